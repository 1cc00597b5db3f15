"""Which clocks of a device are limited under load, over its last runs."""

from datetime import UTC, datetime, timedelta

from farm.core.results.ceiling_history import RunCeilings, ceiling_history
from farm.core.runs.trace_findings import Ceiling

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


def ceiling(name: str = "policy4", *, lowest_hz: int = 1_418_000_000, first_s: float = 20.0) -> Ceiling:
    return Ceiling(
        name=name, hardware_hz=2_367_000_000, lowest_hz=lowest_hz, first_s=first_s, lowered_s=30.0, loss=0.2
    )


def test_the_lowest_limit_and_the_earliest_moment_of_all_runs_are_told_for_each_clock() -> None:
    runs = [
        RunCeilings(measured_at=NOON, ceilings=[ceiling(first_s=25.0)]),
        RunCeilings(measured_at=NOON + timedelta(hours=1), ceilings=[]),
        RunCeilings(
            measured_at=NOON + timedelta(hours=2),
            ceilings=[ceiling(lowest_hz=2_130_000_000), ceiling("gpu", first_s=3.0)],
        ),
    ]
    gpu, big = ceiling_history(runs)
    assert (gpu.name, gpu.limited_runs, gpu.runs, gpu.first_s) == ("gpu", 1, 3, 3.0)
    assert (big.name, big.limited_runs, big.runs, big.first_s) == ("policy4", 2, 3, 20.0)
    assert (big.lowest_hz, big.last_at) == (1_418_000_000, NOON + timedelta(hours=2))


def test_a_device_whose_clocks_stayed_has_no_history() -> None:
    assert ceiling_history([RunCeilings(measured_at=NOON, ceilings=[])]) == ()
