"""A further start after the run that shows where it ran, where the run's own output does not."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from farm.core.evidence import Evidence
from farm.core.placement import Accelerator, Actual, Placement, actual
from farm.core.plan import SHOWS_PLACEMENT, RunPlan
from farm.harness.tool import ToolPass

#: Without it NNAPI's runtime says nothing of its partitions; with it each execution is told at length.
NNAPI_PROPERTIES: Mapping[str, str] = MappingProxyType({"debug.nn.vlog": "all"})
#: Tags of what logs where a model goes; all else of the phone stays there.
NNAPI_LOG = ("ExecutionPlan:V", "Manager:V", "CompilationBuilder:V", "ModelBuilder:V", "*:S")
NNAPI = "nnapi"


def placement_pass(backend: str, words: Sequence[str]) -> ToolPass:
    """The pass of a tool that is called with these words."""
    if backend != NNAPI:
        return ToolPass(name=SHOWS_PLACEMENT, words=words)
    return ToolPass(name=SHOWS_PLACEMENT, words=words, properties=NNAPI_PROPERTIES, log_filters=NNAPI_LOG)


def shown_by(parser: Callable[[str], Placement | None], text: str, evidence: Evidence) -> Placement | None:
    """What the run's output and that of its pass, which has to have ended as well, show together."""
    told = [
        f"{each.stdout}\n{each.stderr}\n{each.log}"
        for each in evidence.passes
        if each.name == SHOWS_PLACEMENT and each.exit is not None and each.exit.code == 0
    ]
    return parser("\n".join([text, *told]))


def actual_of(plan: RunPlan, placement: Placement | None) -> tuple[Actual, Placement | None]:
    """What ran; where that is not shown, what the pass of an earlier run showed, as the proof then says."""
    found = actual(placement, plan.backend)
    if found.accelerator is not Accelerator.UNKNOWN or plan.shown is None:
        return found, placement
    earlier = actual(plan.shown.placement, plan.backend)
    proof = f"{earlier.proof} (shown after attempt {plan.shown.attempt_id}: same cell, build and program)"
    shown = Actual(backend=earlier.backend, accelerator=earlier.accelerator, proof=proof)
    return shown, plan.shown.placement
