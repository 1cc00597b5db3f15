"""`farm rerun`: what it says before it submits, and the old number beside the new one."""

from dataclasses import replace
from typing import Any

import pytest

from farm.cli.run.rerun import agreement_text, comparison_report, plan_report, rerun_result
from farm.core.base.ids import AttemptId, CellId, DeviceId, MatrixId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import CellSummary
from farm.wire.documents.matrices.matrices import MatrixResults
from farm.wire.documents.results.rerun import RerunDifference, RerunPlan
from farm.wire.documents.results.speedups import SpeedupView
from tests.support.sample_views import NOON, matrix_view, speedup_view

TIME = CellSummary(rounds=10, median=18_700_000.0, low=18e6, high=19e6, ci_low=18.5e6, ci_high=18.9e6)


def plan(**changes: Any) -> RerunPlan:
    facts: dict[str, Any] = {
        "attempt_id": AttemptId(17),
        "matrix_id": MatrixId(3),
        "matrix": "demo",
        "cell_id": CellId(7),
        "device_id": DeviceId("phone-1"),
        "device_label": None,
        "harness": "speed_benchmark_torch",
        "label": "int8-core",
        "baseline": "float32",
        "rounds": 10,
        "max_rounds": 10,
        "jobs": 20,
        "max_jobs": 20,
        "speedup": compared(1.52, 1.50, 1.55),
        "time": TIME,
        "control_level": ControlLevel.FREE,
        "measured_at": NOON,
        "differences": (),
        **changes,
    }
    return RerunPlan(**facts)


def compared(speedup: float, low: float | None, high: float | None, *, aa: bool = False) -> SpeedupView:
    return speedup_view(speedup=speedup, ci_low=low, ci_high=high, aa=aa)


def results(*speedups: SpeedupView) -> MatrixResults:
    return MatrixResults(matrix=matrix_view(matrix_id=MatrixId(12)), results=(), speedups=speedups)


def test_what_is_repeated_is_said_with_the_number_that_it_was() -> None:
    assert plan_report(plan()).plain.splitlines()[2:] == [
        "was      1.52x, 1.50x to 1.55x; 18.7 ms",
        "repeats  int8-core beside float32: 10 rounds, 20 jobs",
        "changed  nothing that the farm knows of",
    ]
    growing = plan(rounds=5, max_rounds=40, jobs=10, max_jobs=80, baseline=None, speedup=None)
    assert "repeats  int8-core: 5 to 40 rounds, 10 to 80 jobs" in plan_report(growing).plain


def test_what_is_not_the_same_is_said_and_which_of_both_is_used() -> None:
    changed = (
        RerunDifference(part="program of X for x86_64", before="3f2a91c4", now="9c1b07de", uses_before=True),
        RerunDifference(part="build", before="b1", now="b2", uses_before=False),
    )
    assert plan_report(plan(differences=changed)).plain.splitlines()[-2:] == [
        "changed  program of X for x86_64: 3f2a91c4, now 9c1b07de; the old one is used",
        "changed  build: b1, now b2",
    ]


@pytest.mark.parametrize(
    ("new", "agrees"),
    [((1.54, 1.51, 1.57), True), ((1.70, 1.66, 1.74), False), ((1.54, None, None), None)],
)
def test_the_new_number_stands_beside_the_old_one(
    new: tuple[float, float | None, float | None], agrees: bool | None
) -> None:
    result = rerun_result(plan(), results(compared(1.0, 0.9, 1.1, aa=True), compared(*new)))
    assert result.agrees is agrees
    lines = comparison_report(result).plain.splitlines()
    assert lines[0].split() == ["matrix", "3", "matrix", "12"]
    assert lines[1].startswith("speedup  1.52x, 1.50x to 1.55x  ")
    assert lines[-1] == agreement_text(agrees)
    assert max(map(len, lines)) <= 80


def test_a_cell_that_is_compared_with_none_is_compared_by_its_time() -> None:
    alone = plan(baseline=None, speedup=None, time=replace(TIME, ci_low=None, ci_high=None))
    result = rerun_result(alone, results())
    assert result.agrees is None
    assert "speedup" not in comparison_report(result).plain
