"""Fitness of a reference run for an assessment, and the key of the runs it is compared with."""

from datetime import datetime

from farm.core.base.ids import DeviceId
from farm.core.devices.condition import Condition, Gates, closed_gates
from farm.core.devices.device import DeviceFacts
from farm.core.runs.trace_findings import TraceFindings

#: Conditions under which a reference run is assessed and extends the range. Full storage slows nothing.
FITNESS = Gates(max_skin_c=38.0, min_battery_pct=20, max_battery_c=40.0, min_storage_bytes=0)
#: Of a reference run that is not bound to cores.
ANY_CORES = "any"


def unfit_reasons(
    before: Condition | None,
    after: Condition | None,
    facts: DeviceFacts | None,
    during: TraceFindings | None = None,
) -> tuple[str, ...]:
    """Return why a reference run cannot be assessed; empty when it can. What is not reported is no reason."""
    looks = {"before": before, "after": after}
    reasons = [
        f"{when}: {reason}"
        for when, look in looks.items()
        if look is not None
        for reason in (*closed_gates(look, FITNESS), *_load_reasons(look, facts))
    ]
    if during is not None:
        reasons += (f"during: {reason}" for reason in (*during.throttled, *during.capped, *during.swapped))
    if before is not None and after is not None and before.plugged != after.plugged:
        reasons.append(f"its charger changed from {before.plugged} to {after.plugged}")
    return tuple(reasons)


def reference_key(facts: DeviceFacts, host: str, cores: str) -> str:
    """Return the key of comparable devices: model, chip and build; the CPU of the host for virtual ones.

    So are `cores`, that a run was bound to: a phone that switches its fastest off now and then is not slow.
    """
    chip, build = facts.soc or "unknown chip", facts.build_fingerprint or "unknown build"
    kind = f"virtual phone on {host}" if facts.virtual else f"{facts.device_model} / {chip} / {build}"
    return kind if cores == ANY_CORES else f"{kind} / {cores}"


def own_reference_key(kind: str, device_id: DeviceId, accepted_at: datetime) -> str:
    """Return the key of a device that an operator re-baselined: it is its own kind since then."""
    return f"{kind} / {device_id} since {accepted_at:%Y-%m-%dT%H:%M:%S.%f}"


def _load_reasons(look: Condition, facts: DeviceFacts | None) -> list[str]:
    """Return reasons from load: a virtual device shares its host's cores; Android also counts waiting."""
    if facts is None or not facts.virtual or look.load_1m is None or not facts.cores:
        return []
    if look.load_1m <= facts.cores:
        return []
    return [f"a load of {look.load_1m:.1f} on {facts.cores} cores"]
