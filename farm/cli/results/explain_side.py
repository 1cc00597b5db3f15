"""One cell, or the phone it ran on, in the lines of an explanation."""

from collections.abc import Callable, Iterator, Mapping

from farm.cli.jobs.job_report import field, flags
from farm.cli.shell.formatting import EMPTY_CELL, counts_text, device_kind, join_or_dash, plural
from farm.core.base.units import size_text
from farm.core.devices.condition import Gates, ThermalStatus, UnknownGatePolicy
from farm.core.devices.condition_range import ConditionRange
from farm.core.devices.device import DeviceFacts
from farm.core.models.variant import Manifest
from farm.wire.documents.results.explain import ExplainedDevice, PlacementView, SideView

#: Name and form by condition.
_CONDITIONS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "thermal_status": ("thermal status", lambda value: ThermalStatus(int(value)).name),
    "skin_c": ("skin", "{:.1f} °C".format),
    "battery_c": ("battery", "{:.1f} °C".format),
    "battery_level_pct": ("battery", "{:.0f} %".format),
    "load_1m": ("load", "{:.2f}".format),
    "memory_available_bytes": ("free memory", size_text),
}


def side_lines(side: SideView) -> Iterator[str]:
    """What ran, where it ran, and how it went."""
    if side.manifest is not None:
        yield from _variant_lines(side.variant or "", side.manifest)
    program = side.program
    files = f"{plural(program.files, 'file')}, {size_text(program.size_bytes)}"
    yield field("program", f"{program.harness} for {program.abi}, {files}, {program.digest}")
    yield field("clock", f"{program.clock_covers}")
    yield field("flags", flags(side.changed_settings))
    yield field("asked for", side.backend)
    for placement in side.placements:
        yield field("ran on", _placement(placement))
    yield field(
        "went",
        f"jobs: {counts_text(side.jobs_by_outcome)}; measurements: {counts_text(side.runs_by_quality)}",
    )
    for reason, times in side.quality_reasons.items():
        yield field("", f"{times} x {reason}")
    yield from condition_lines(side)
    if side.parser_versions:
        yield field("read by", f"parser version {', '.join(map(str, side.parser_versions))}")


def _variant_lines(name: str, manifest: Manifest) -> Iterator[str]:
    made = ", ".join(f"{tool} {version}" for tool, version in manifest.built_with.items())
    yield field("file", f"{name}, {size_text(manifest.size_bytes)}, {manifest.digest}")
    if made:
        yield field("made with", made)
    fidelity = manifest.fidelity
    if fidelity is not None:
        yield field(
            "fidelity",
            f"with float32 over {plural(fidelity.inputs, 'input')}: correlation {fidelity.correlation:.4f},"
            f" same best class {fidelity.top1_share:.0%}, largest difference {fidelity.max_difference:.3g}",
        )


def _placement(placement: PlacementView) -> str:
    runs = plural(placement.runs, "run")
    last = ", the last one's proof" if placement.proofs > 1 else ""
    return f"{placement.actual_backend} on {placement.accelerator} in {runs}{last}: {placement.proof}"


def condition_lines(side: SideView) -> Iterator[str]:
    """Ranges over runs, before and after; what no phone said is not there."""
    said = [_condition(each, len(side.runs)) for each in side.conditions]
    if side.runs:
        yield field("conditions", join_or_dash(said) if said else "the phone says nothing of its conditions")
    if side.runs_without_evidence:
        yield field("", f"of {plural(side.runs_without_evidence, 'run')} the evidence expired")


def _condition(found: ConditionRange, runs: int) -> str:
    name, form = _CONDITIONS[found.name]
    spans = [
        EMPTY_CELL
        if span is None
        else form(span[0])
        if span[0] == span[1]
        else f"{form(span[0])} to {form(span[1])}"
        for span in (found.before, found.after)
    ]
    known = "" if found.known == runs else f" (of {found.known} runs)"
    return f"{name} {spans[0]} before, {spans[1]} after{known}"


def device_lines(device: ExplainedDevice) -> Iterator[str]:
    """The phone; one line for each of its system builds that runs fell into."""
    name = device.device_id if device.label is None else f"{device.label} ({device.device_id})"
    yield field("device", f"{name} at {device.host}")
    for build in device.builds:
        yield field("", f"{_facts(build.facts)}; {plural(build.runs, 'run')}")
    if len(device.builds) > 1:
        yield field("", "its system build changed in between: what is before and after may not compare")


def _facts(facts: DeviceFacts) -> str:
    known = [
        device_kind(facts.device_model, facts.soc, virtual=facts.virtual),
        None if facts.android is None else f"Android {facts.android}",
        None if facts.api_level is None else f"API {facts.api_level}",
        facts.abi,
        None if facts.kernel is None else f"kernel {facts.kernel}",
        facts.build_fingerprint,
    ]
    return ", ".join(part for part in known if part)


def gates_line(gates: Gates, noise_limit: float | None) -> str:
    """What had to hold before each run, and what made one noisy."""
    told = [
        f"thermal status at most {gates.max_thermal_status.name}",
        f"skin at most {gates.max_skin_c:g} °C",
        f"battery at least {gates.min_battery_pct} %",
        "plugged in" if gates.mains else None,
        None if gates.full_clocks else "clocks may be limited",
        "nothing of it unknown" if gates.unknown is UnknownGatePolicy.DEFER else None,
    ]
    noise = "" if noise_limit is None else f"; noisy above {noise_limit:.0%}"
    return field("gates", f"{', '.join(each for each in told if each)}{noise}")
