"""Placements of PyTorch Mobile: its own output names no hardware, drivers in the device's log do.

NNAPI and Vulkan runs therefore have a placement pass, whose log is kept.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from farm.core.runs.evidence import Evidence, PassEvidence
from farm.core.runs.placement import Accelerator, ActualBackend, Placement, Share, resolve_actual_backend
from farm.core.runs.plan import PLACEMENT_PROBE, RunPlan
from farm.harness.base.log_lines import log_lines, matching_lines
from farm.harness.base.placement_probe import NNAPI_LOG, NNAPI_PROPERTIES, earlier_actual_backend
from farm.harness.base.tool_harness import ToolPass
from farm.harness.nnapi.placement import nnapi_placement
from farm.harness.torch.output import last_lines

#: Vulkan drivers by their log tags: Qualcomm, Arm, Imagination, Samsung.
_GPU_DRIVER = re.compile(
    r"\b(AdrenoVK(?:-\d+)?|Adreno(?:-GSL)?|mali(?=\s*:)|Mali[- ]G?\d+|PVR_VK|PowerVR|Xclipse)\b"
)
#: Vulkan computed by the CPU, as in emulators.
_CPU_DRIVER = re.compile(r"\b(SwiftShader|llvmpipe|lavapipe)\b", re.IGNORECASE)
_NO_VULKAN = re.compile(
    r"(?:not linked with support for|failed to (?:create|initialize)|Couldn't find|no) vulkan"
    r"|got VULKAN|from the 'Vulkan' backend|Vulkan is not available",
    re.IGNORECASE,
)
#: Loading, compiling by the driver, and one iteration; NPUs take minutes to compile, in the run as well.
_PASS_LIMIT_S = 60.0
_ITERATIONS: Mapping[str, str] = {"--iter=": "--iter=1", "--warmup=": "--warmup=0"}
_PROPERTIES: Mapping[str, Mapping[str, str]] = {"nnapi": NNAPI_PROPERTIES, "vulkan": {}}
#: Tags of what logs the placement of models; the rest of the log stays on the device.
_LOG_FILTERS: Mapping[str, tuple[str, ...]] = {
    "nnapi": NNAPI_LOG,
    "vulkan": ("AdrenoVK-0:V", "Adreno:V", "Adreno-GSL:V", "mali:V", "PVR_VK:V", "vulkan:V", "*:S"),
}


def pytorch_vulkan_placement(log: str, pid: int | None = None) -> Placement | None:
    """Return the loaded Vulkan driver. PyTorch never falls back from it: a missing operator ends the run."""
    lines = [line for line in log_lines(log) if pid is None or line.pid in (pid, None)]
    warnings = tuple(line.quoted for line, _ in matching_lines(lines, _NO_VULKAN))[:5]
    for pattern, kind in ((_CPU_DRIVER, Accelerator.CPU), (_GPU_DRIVER, Accelerator.GPU)):
        for line, match in matching_lines(lines, pattern):
            share = Share(accelerator=kind, by=match[1], line=line.quoted)
            return Placement(shares=(share,), warnings=warnings)
    return Placement(shares=(), warnings=warnings) if warnings else None


#: Of a pass's log; for NNAPI one with `debug.nn.vlog`, which alone shows the drivers.
_PARSERS: Mapping[str, Callable[[str, int | None], Placement | None]] = {
    "nnapi": nnapi_placement,
    "vulkan": pytorch_vulkan_placement,
}


def placement_passes(backend: str, words: Sequence[str]) -> tuple[ToolPass, ...]:
    """Return the pass that shows where a backend runs; none for the CPU, which is a property of the file."""
    if backend not in _PARSERS:
        return ()
    few = [
        next((short for long, short in _ITERATIONS.items() if word.startswith(long)), word) for word in words
    ]
    return (
        ToolPass(
            name=PLACEMENT_PROBE,
            words=few,
            properties=_PROPERTIES[backend],
            log_filters=_LOG_FILTERS[backend],
            limit_s=_PASS_LIMIT_S,
        ),
    )


def torch_actual_backend(
    plan: RunPlan, evidence: Evidence, backend: str
) -> tuple[ActualBackend, Placement | None]:
    """Return what ran, by the run's own pass or an earlier one; else unknown, with the reason."""
    probe = next((tool_pass for tool_pass in evidence.passes if tool_pass.name == PLACEMENT_PROBE), None)
    if probe is None and plan.shown is not None:
        return earlier_actual_backend(plan.shown, backend)
    if probe is None:
        return _unknown(backend, "no pass after the run shows where it ran"), None
    if (wrong := _mismatch_reason(probe)) is not None:
        return _unknown(backend, f"the pass that was to show where it ran {wrong}"), None
    placement = _PARSERS[backend](probe.log, probe.pid)
    if placement is None or not placement.shares:
        warning = f": {placement.warnings[0]}" if placement is not None and placement.warnings else ""
        return _unknown(
            backend, f"the phone's log names no driver that took a part of the model{warning}"
        ), placement
    return resolve_actual_backend(placement, backend), placement


def _mismatch_reason(probe: PassEvidence) -> str | None:
    """Return why a pass proves nothing about its run: it has to end in the same way."""
    if probe.error is not None:
        return f"could not be carried out: {probe.error.message}"
    if probe.exit is None or probe.exit.timed_out:
        return "did not end in time"
    if probe.exit.code != 0:
        return f"ended with {probe.exit.code}, and the run with 0"
    return None if last_lines(probe.stdout) else "printed no result"


def _unknown(backend: str, why: str) -> ActualBackend:
    nothing = resolve_actual_backend(None, backend)
    return ActualBackend(backend=backend, accelerator=nothing.accelerator, proof=why)
