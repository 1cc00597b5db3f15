"""The lines of an explanation that describe one cell or its device."""

from collections.abc import Callable, Iterator, Mapping

from farm.cli.jobs.job_report import field, flags
from farm.cli.shell.formatting import EMPTY_CELL, counts_text, device_kind, join_or_dash, plural
from farm.core.base.units import size_text
from farm.core.devices.condition import Gates, ThermalStatus, UnknownGatePolicy
from farm.core.devices.condition_range import ConditionRange
from farm.core.devices.device import DeviceFacts
from farm.core.models.variant import Manifest
from farm.wire.documents.results.explain import ExplainedDevice, PlacementView, SideView

#: Name and formatter by condition.
_CONDITIONS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "thermal_status": ("thermal status", lambda value: ThermalStatus(int(value)).name),
    "skin_c": ("skin", "{:.1f} °C".format),
    "battery_c": ("battery", "{:.1f} °C".format),
    "battery_level_pct": ("battery", "{:.0f} %".format),
    "load_1m": ("load", "{:.2f}".format),
    "memory_available_bytes": ("free memory", size_text),
}


def side_lines(side: SideView) -> Iterator[str]:
    """Return the lines about what ran, where it ran, and its outcome."""
    if side.manifest is not None:
        yield from _variant_lines(side.variant or "", side.manifest)
    program = side.program
    files = f"{plural(program.files, 'file')}, {size_text(program.size_bytes)}"
    yield field("program", f"{program.harness} for {program.abi}, {files}, {program.digest}")
    yield field("clock", f"{program.clock_covers}")
    yield field("flags", flags(side.changed_settings))
    yield field("requested", side.backend)
    for placement in side.placements:
        yield field("actual", _placement(placement))
    yield field(
        "outcome",
        f"jobs: {counts_text(side.jobs_by_outcome)}; measurements: {counts_text(side.runs_by_quality)}",
    )
    for reason, times in side.quality_reasons.items():
        yield field("", f"{times} x {reason}")
    yield from condition_lines(side)
    if side.parser_versions:
        yield field("parser", f"version {', '.join(map(str, side.parser_versions))}")


def _variant_lines(name: str, manifest: Manifest) -> Iterator[str]:
    tools = ", ".join(f"{tool} {version}" for tool, version in manifest.built_with.items())
    yield field("file", f"{name}, {size_text(manifest.size_bytes)}, {manifest.digest}")
    if tools:
        yield field("built with", tools)
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
    """Return the ranges of conditions over runs, before and after; conditions never reported are left out."""
    ranges = [_condition(condition, len(side.runs)) for condition in side.conditions]
    if side.runs:
        yield field("conditions", join_or_dash(ranges) if ranges else "not reported by the device")
    if side.runs_without_evidence:
        yield field("", f"of {plural(side.runs_without_evidence, 'run')} the evidence expired")


def _condition(condition: ConditionRange, runs: int) -> str:
    name, form = _CONDITIONS[condition.name]
    spans = [
        EMPTY_CELL
        if span is None
        else form(span[0])
        if span[0] == span[1]
        else f"{form(span[0])} to {form(span[1])}"
        for span in (condition.before, condition.after)
    ]
    reported = "" if condition.known == runs else f" (of {condition.known} runs)"
    return f"{name} {spans[0]} before, {spans[1]} after{reported}"


def device_lines(device: ExplainedDevice) -> Iterator[str]:
    """Return the device, with one line for each system build that it ran."""
    name = device.device_id if device.label is None else f"{device.label} ({device.device_id})"
    yield field("device", f"{name} at {device.host}")
    for build in device.builds:
        yield field("", f"{_facts(build.facts)}; {plural(build.runs, 'run')}")
    if len(device.builds) > 1:
        yield field("", "its system build changed in between: runs before and after may not be comparable")


def _facts(facts: DeviceFacts) -> str:
    parts = [
        device_kind(facts.device_model, facts.soc, virtual=facts.virtual),
        None if facts.android is None else f"Android {facts.android}",
        None if facts.api_level is None else f"API {facts.api_level}",
        facts.abi,
        None if facts.kernel is None else f"kernel {facts.kernel}",
        facts.build_fingerprint,
    ]
    return ", ".join(part for part in parts if part)


def gates_line(gates: Gates, noise_limit: float | None) -> str:
    """Return the gates before each run, and the noise limit."""
    conditions = [
        f"thermal status at most {gates.max_thermal_status.name}",
        f"skin at most {gates.max_skin_c:g} °C",
        f"battery at least {gates.min_battery_pct} %",
        "plugged in" if gates.mains else None,
        None if gates.full_clocks else "clocks may be limited",
        "all of them reported" if gates.unknown is UnknownGatePolicy.DEFER else None,
    ]
    noise = "" if noise_limit is None else f"; noisy above {noise_limit:.0%}"
    return field("gates", f"{', '.join(condition for condition in conditions if condition)}{noise}")
