"""The diagnostic pass that shows where a run was placed, where the run's own output does not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from farm.core.runs.evidence import Evidence
from farm.core.runs.placement import (
    Accelerator,
    ActualBackend,
    Placement,
    placement_text,
    resolve_actual_backend,
)
from farm.core.runs.plan import PLACEMENT_PROBE, EarlierPlacement, RunPlan
from farm.harness.base.accelerators import FAILED
from farm.harness.base.log_lines import own_lines
from farm.harness.base.tool_harness import ToolPass

#: Without it NNAPI's runtime names at most the driver that compiled a whole model; with it each operation. A
#: plain dict, because it is serialised with the plan.
NNAPI_PROPERTIES: Mapping[str, str] = {"debug.nn.vlog": "all"}
#: Tags of what logs the placement of models; the rest of the log stays on the device.
NNAPI_LOG = (
    "ExecutionPlan:V",
    "Manager:V",
    "CompilationBuilder:V",
    "ModelBuilder:V",
    #: Reports where a driver failed and the CPU did its part.
    "ExecutionBuilder:V",
    "*:S",
)
NNAPI = "nnapi"
#: Lines that name a driver or delegate are shorter.
_LONGEST_LINE_CHARS = 400


def placement_pass(backend: str, arguments: Sequence[str]) -> ToolPass:
    """Return the placement pass of a tool that is called with these arguments."""
    if backend != NNAPI:
        return ToolPass(name=PLACEMENT_PROBE, words=arguments)
    return ToolPass(name=PLACEMENT_PROBE, words=arguments, properties=NNAPI_PROPERTIES, log_filters=NNAPI_LOG)


def placement_of_pass(
    parser: Callable[[str], Placement | None], text: str, evidence: Evidence
) -> Placement | None:
    """Return the placement that the output of a run and that of its successful pass show together.

    A pass whose own output counts other nodes than the run's proves nothing about the run.
    """
    text = _cut(text)
    placement = parser(text)
    for probe in evidence.passes:
        if probe.name != PLACEMENT_PROBE or probe.exit is None or probe.exit.code != 0:
            continue
        probe_text = _cut(f"{probe.stdout}\n{probe.stderr}")
        probe_placement = parser(probe_text)
        if (
            placement is not None
            and probe_placement is not None
            and _nodes(placement) != _nodes(probe_placement)
        ):
            warning = f"the pass after the run was placed otherwise: {placement_text(probe_placement)}"
            return replace(placement, warnings=(warning, *placement.warnings))
        return parser("\n".join([text, probe_text, _cut(own_lines(probe.log, probe.pid))]))
    return placement


def _cut(text: str) -> str:
    return "\n".join(line[:_LONGEST_LINE_CHARS] for line in text.splitlines())


def _nodes(placement: Placement) -> list[tuple[str, int | None]]:
    return sorted((share.by, share.nodes) for share in placement.shares)


def actual_backend_of_plan(
    plan: RunPlan, placement: Placement | None
) -> tuple[ActualBackend, Placement | None]:
    """Return what ran; where the run does not show it, what the pass of an earlier run showed."""
    actual = resolve_actual_backend(placement, plan.backend)
    # What failed in this run is not proven by another one.
    has_failed = placement is not None and any(share.by.endswith(FAILED) for share in placement.shares)
    if actual.accelerator is not Accelerator.UNKNOWN or plan.shown is None or has_failed:
        return actual, placement
    if placement is not None and not _is_consistent(placement, plan.shown.placement):
        difference = (
            f"attempt {plan.shown.attempt_id} was placed otherwise: {placement_text(plan.shown.placement)}"
        )
        return replace(actual, proof=f"{actual.proof}; {difference}"), placement
    return earlier_actual_backend(plan.shown, plan.backend)


def earlier_actual_backend(earlier: EarlierPlacement, backend: str) -> tuple[ActualBackend, Placement]:
    """Return what ran by the pass of an earlier run, with a proof that names the attempt."""
    actual = resolve_actual_backend(earlier.placement, backend)
    proof = f"{actual.proof} (shown after attempt {earlier.attempt_id}: same cell, build and program)"
    return replace(actual, proof=proof), earlier.placement


def _is_consistent(placement: Placement, earlier: Placement) -> bool:
    """Return whether the CPU's part that a run reports is the one of the earlier run."""
    nodes_by_software = {
        share.by: share.nodes for share in earlier.shares if share.accelerator is Accelerator.CPU
    }
    cpu_shares = [share for share in placement.shares if share.accelerator is Accelerator.CPU]
    return all(
        share.by in nodes_by_software
        and (share.nodes is None or nodes_by_software[share.by] in (share.nodes, None))
        for share in cpu_shares
    )
