"""What a run and its pass show together: drivers, where the pass was placed as the run was."""

from dataclasses import replace

import pytest

from farm.core.base.ids import AttemptId
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.placement import Accelerator, Placement, resolve_actual_backend
from farm.core.runs.plan import EarlierPlacement
from farm.harness.base.placement_probe import actual_backend_of_plan, placement_of_pass
from farm.harness.tflite.placement import tflite_placement
from tests.support.harness import run_samples as sample

TAKEN = "TfLiteNnapiDelegate delegate: {} nodes delegated out of 64 nodes with 1 partitions.\n"


def logged(driver: str, pid: int = 77) -> str:
    line = f"ModelBuilder::findBestDeviceForEachOperation(ADD) = 0 ({driver})"
    return f"03-02 11:20:31.101    {pid}    {pid} I ExecutionPlan: {line}\n"


def shown(log: str, *, run: int = 60, in_pass: int = 60, code: int = 0) -> Placement:
    ended = ExitRecord(code=code, duration_s=1.0)
    found = PassEvidence(name="placement", exit=ended, stdout=TAKEN.format(in_pass), log=log, pid=77)
    evidence: Evidence = replace(sample.evidence(TAKEN.format(run)), passes=(found,))
    placed = placement_of_pass(tflite_placement, evidence.stdout, evidence)
    assert placed is not None
    return placed


def test_the_pass_names_the_driver_of_the_nodes_that_the_run_says_were_taken() -> None:
    ran = resolve_actual_backend(shown(logged("qti-dsp")), "nnapi")
    assert (ran.backend, ran.accelerator) == ("nnapi", Accelerator.DSP)
    assert "60 nodes delegated" in ran.proof


def test_a_pass_that_was_placed_otherwise_does_not_speak_for_the_run() -> None:
    ran = resolve_actual_backend(shown(logged("qti-dsp"), in_pass=41), "nnapi")
    assert ran.accelerator is Accelerator.UNKNOWN
    assert "placed otherwise" in ran.proof


@pytest.mark.parametrize("placed", [shown(logged("qti-dsp", pid=12)), shown(logged("qti-dsp"), code=1)])
def test_neither_another_process_nor_a_pass_that_failed_counts(placed: Placement) -> None:
    assert resolve_actual_backend(placed, "nnapi").accelerator is Accelerator.UNKNOWN


@pytest.mark.parametrize(("own", "kind"), [(60, Accelerator.DSP), (41, Accelerator.UNKNOWN)])
def test_an_earlier_run_that_was_placed_otherwise_does_not_speak_for_this_one(
    own: int, kind: Accelerator
) -> None:
    earlier = EarlierPlacement(attempt_id=AttemptId(7), placement=shown(logged("qti-dsp")))
    plan = replace(sample.plan("nnapi"), shown=earlier)
    ran, placement = actual_backend_of_plan(plan, tflite_placement(TAKEN.format(own)))
    assert ran.accelerator is kind
    assert "attempt 7" in ran.proof
    assert placement is not None
