"""Whose turn it is to do what is done once."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.jobs.leader_lease import Holding, Turn, turn

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LEASE = timedelta(seconds=15)


def holding(held_for_s: float, holder: str = "other") -> Holding:
    return Holding(holder=holder, held_until=NOW + timedelta(seconds=held_for_s))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, Turn.TAKEN),
        (holding(10), Turn.ELSEWHERE),
        (holding(0.001), Turn.ELSEWHERE),
        (holding(0), Turn.TAKEN),
        (holding(-100), Turn.TAKEN),
        (holding(10, "me"), Turn.KEPT),
        # It stood still for longer than its lease: others had the right to take over, and it begins anew.
        (holding(-1, "me"), Turn.TAKEN),
    ],
)
def test_a_duty_belongs_to_its_holder_until_it_lapses(found: Holding | None, expected: Turn) -> None:
    assert turn(found, "me", now=NOW, lease=LEASE) is expected


@pytest.mark.fault(50)
def test_nobody_waits_for_a_holder_whose_clock_was_a_day_ahead() -> None:
    assert turn(holding(86_400), "me", now=NOW, lease=LEASE) is Turn.TAKEN
    # A few seconds are between any two machines.
    assert turn(holding(20), "me", now=NOW, lease=LEASE) is Turn.ELSEWHERE
