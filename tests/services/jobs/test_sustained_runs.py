"""Sustained matrices: how many iterations a run is planned with, what comes of it, and its series."""

from typing import Any

import pytest

from farm.core.errors import MatrixInvalid
from farm.core.runs.derived.sustained import MAX_ITERATIONS, SUSTAINED_OUTPUT_BYTES
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.plan import RunPlan
from farm.services.matrices.plan import plan_matrix
from farm.services.results.cells import list_results
from farm.services.results.explanations.attempts import attempt_view
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.services.matrices.test_generic_harness import MATRIX, register
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of, torch_output

pytestmark = pytest.mark.usefixtures("both_variants")


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("virtual-1")


class Phone:
    """Runs whatever it is given in iterations of 2 ms, and of 3 ms after the first second."""

    def __init__(self) -> None:
        self.plans: list[RunPlan] = []

    def __call__(self, assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        self.plans.append(plan)
        samples_us = [2000.0 if number < 500 else 3000.0 for number in range(int(plan.settings["iter"]))]
        return Evidence(
            fence=assignment.fence,
            argv=("./program",),
            exit=ExitRecord(code=0, duration_s=sum(samples_us) / 1e6 + 1.0),
            stdout=torch_output(samples_us),
        )

    @property
    def iterations(self) -> list[int]:
        return [int(plan.settings["iter"]) for plan in self.plans]


ONE_CELL: dict[str, Any] = {
    "axes": {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
    "baseline": None,
    "rounds": 1,
}


def qualities(farm: FarmRig) -> list[tuple[int, str, str]]:
    rows = farm.rows("SELECT repeat, quality, quality_reasons FROM measurements ORDER BY measurement_id")
    return [(row["repeat"], row["quality"], str(row["quality_reasons"])) for row in rows]


def test_without_a_known_time_the_first_run_is_short_and_its_repeat_is_long_enough(
    farm: FarmRig, host: HostRig
) -> None:
    phone = Phone()
    matrix_id = farm.submit(**ONE_CELL, sustained="6s")
    host.run(phone)
    # 10 ms of 2 ms iterations are seen first; 6 s of them take 8.5 s, since they become slower.
    assert phone.iterations == [5, 3000]
    (short, longer) = qualities(farm)
    assert short[:2] == (0, "incomplete")
    assert "it worked for 0.0 s, 6 s were asked for" in short[2]
    assert longer == (1, "valid", "[]")
    (result,) = farm.read(list_results, matrix_id)
    # The steady time, not the median of all.
    assert result.time is not None
    assert (result.time.median, result.time.rounds) == (3e6, 1)


def test_a_time_that_the_farm_knows_spares_the_short_run(farm: FarmRig, host: HostRig) -> None:
    phone = Phone()
    farm.submit(**ONE_CELL)
    host.run(phone)
    farm.submit(**ONE_CELL | {"rounds": 2}, sustained="6s")
    host.run(phone)
    # Then the mean of the sustained run itself, 2.83 ms, plans the next one.
    assert phone.iterations == [5, 3000, 2118]
    assert [quality for _, quality, _ in qualities(farm)] == ["valid"] * 3


def test_time_limit_and_output_limit_follow_the_time(farm: FarmRig, host: HostRig) -> None:
    phone = Phone()
    farm.submit(**ONE_CELL, timeout_s=100.0)
    host.run(phone)
    farm.submit(**ONE_CELL, timeout_s=100.0, sustained="10min")
    assignment = host.exchange().assignments[0]
    plan = plan_of(assignment)
    assert (plan.sustained_s, plan.timeout_s) == (600, 100.0 + 3 * 600)
    assert plan.output_limit_bytes == SUSTAINED_OUTPUT_BYTES
    # 600 s of 2 ms would be 300,000 iterations, whose lines are more than is brought back.
    assert plan.settings["iter"] == MAX_ITERATIONS


def test_sustained_series_are_never_those_of_other_runs(farm: FarmRig, host: HostRig) -> None:
    phone = Phone()
    for changes in ({}, {"sustained": "6s"}, {"sustained": 6}, {"sustained": "7 s"}):
        farm.submit(**ONE_CELL, **changes)
        host.run(phone)
    counts = farm.rows(
        "SELECT CAST(settings AS TEXT) AS settings, count(*) AS runs FROM series"
        " JOIN measurements ON measurements.series_id = series.series_id"
        " GROUP BY series.series_id, CAST(settings AS TEXT) ORDER BY series.series_id"
    )
    assert [(row["runs"], "run.sustained_s" in row["settings"]) for row in counts] == [
        (1, False), (2, True), (1, True),
    ]  # fmt: skip


def test_an_attempt_shows_latency_over_time(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL, sustained="6s")
    host.run(Phone())
    (row,) = farm.rows("SELECT max(attempt_id) AS attempt_id FROM measurements")
    view = farm.read(attempt_view, row["attempt_id"])
    assert view.reading is not None
    assert view.reading.profile is not None
    assert [view.reading.profile.peak_ns, view.reading.profile.steady_ns] == [2e6, 3e6]
    values = {metric.name: metric.value for metric in view.reading.metrics}
    assert values == {
        "sustained_for": pytest.approx(8.5),
        "sustained_peak": 2.0,
        "sustained_decay": pytest.approx(50.0),
    }


def test_a_harness_that_counts_nothing_has_its_cells_rejected(farm: FarmRig, host: HostRig) -> None:
    register(farm)
    with pytest.raises(MatrixInvalid, match="definition of bench names no `iterations_flag`"):
        farm.submit(**MATRIX, sustained="6s")
    assert farm.submit(**MATRIX)


@pytest.mark.parametrize(
    ("harness", "regime"),
    [("llama-bench", "cold"), ("litert_lm_advanced_main", "first"), ("litert_lm_advanced_main", "cold")],
)
def test_a_regime_in_which_a_process_works_once_is_refused_where_it_is_sustained(
    farm: FarmRig, host: HostRig, harness: str, regime: str
) -> None:
    for place in (
        {"settings": {"regime": regime}},
        {"axes": {**ONE_CELL["axes"], "regime": ["warm", regime]}},
    ):
        with pytest.raises(MatrixInvalid) as caught:
            farm.submit(**{**ONE_CELL, "settings": {}, "harness": harness, "sustained": "6s", **place})
        (name,) = place
        message = f"with regime `{regime}` a process of {harness} works once and cannot be sustained"
        assert caught.value.message == f"{name}.regime: {message}"
        assert caught.value.hint == "use `warm`, or leave `sustained` out"
        with pytest.raises(MatrixInvalid) as caught:
            farm.submit(**{**ONE_CELL, "settings": {}, "harness": harness, **place})
        assert "regime" not in caught.value.message


def test_metrics_of_sustained_runs_can_be_named_where_there_are_some(farm: FarmRig, host: HostRig) -> None:
    farm.submit(**ONE_CELL, sustained="6s", metrics=["sustained_decay"])
    with pytest.raises(MatrixInvalid, match="prints no metric `sustained_decay`"):
        farm.submit(**ONE_CELL, metrics=["sustained_decay"])


def test_a_plan_estimates_at_most_time_out_and_time_together(farm: FarmRig, host: HostRig) -> None:
    spec: dict[str, Any] = {
        "name": "test", "harness": "speed_benchmark_torch", "devices": {"virtual": True}, **ONE_CELL,
    }  # fmt: skip
    host.run(Phone())
    view = farm.read(plan_matrix, matrix_spec({**spec, "timeout_s": 100.0, "sustained": "10min"}))
    assert (view.device_s, view.is_upper_bound) == (700.0, True)
