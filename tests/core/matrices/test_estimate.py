"""How long runs are expected to take, and how long a phone still needs."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.base.ids import digest_of
from farm.core.matrices.estimate import EstimateBasis, RunHistory, RunKind, pace_s, remaining_s

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def kind(
    series: str = "a", *, model: str | None = "net", device_model: str = "P", threads: int = 1
) -> RunKind:
    return RunKind(
        series=digest_of(series.encode()),
        harness="h",
        model=model,
        device_model=device_model,
        settings=frozenset({("threads", threads)}),
    )


def test_the_median_of_the_runs_most_alike_is_taken() -> None:
    past = RunHistory(
        [(kind(), 1.0), (kind(), 9.0), (kind(), 2.0), (kind("b"), 50.0), (kind("c", threads=2), 90.0)]
    )
    assert past.estimate(kind(), timeout_s=100).seconds == 2.0
    assert past.estimate(kind(), timeout_s=100).basis is EstimateBasis.SERIES
    alike = past.estimate(kind("new"), timeout_s=100)
    assert (alike.seconds, alike.basis) == (5.5, EstimateBasis.DEVICE_MODEL)
    same_harness = past.estimate(kind("new", device_model="Q"), timeout_s=100)
    assert (same_harness.seconds, same_harness.basis) == (9.0, EstimateBasis.HARNESS)


def test_without_runs_the_time_out_is_taken() -> None:
    assert RunHistory([]).estimate(kind(), timeout_s=60) == RunHistory([]).estimate(kind("b"), timeout_s=60)
    assert RunHistory([]).estimate(kind(), timeout_s=60).basis is EstimateBasis.TIMEOUT


def test_settings_count_in_any_order_and_models_apart() -> None:
    past = RunHistory([(kind(model=None), 3.0)])
    assert past.estimate(kind("new", model=None), timeout_s=60).basis is EstimateBasis.DEVICE_MODEL
    assert past.estimate(kind("new"), timeout_s=60).basis is EstimateBasis.HARNESS


@pytest.mark.parametrize(
    ("seconds", "pace"),
    [
        ([], None),
        ([0], None),
        ([0, 10], 10.0),
        ([0, 10, 20, 3620, 3630], 10.0),
        ([0, 10, 20, 20, 20, 20], 10.0),
        ([30, 10, 0, 20], 10.0),
        ([*range(0, 3000, 100), *range(3000, 3031, 1)], 1.0),
    ],
)
def test_a_pace_is_the_usual_time_between_ends(seconds: list[float], pace: float | None) -> None:
    assert pace_s([NOON + timedelta(seconds=each) for each in seconds]) == pace


def test_the_time_since_the_last_end_belongs_to_the_job_under_way_and_to_no_more() -> None:
    assert remaining_s(3, 10.0, 4.0) == 26.0
    assert remaining_s(3, 10.0, 500.0) == 20.0
    assert remaining_s(1, 10.0, 500.0) == 0.0
