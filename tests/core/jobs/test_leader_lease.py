"""Whose turn it is to do what is done once."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.operations.leader_lease import LeaderLease, LeaseDecision, decide_lease

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LEASE = timedelta(seconds=15)


def holding(held_for_s: float, holder: str = "other") -> LeaderLease:
    return LeaderLease(holder=holder, expires_at=NOW + timedelta(seconds=held_for_s))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, LeaseDecision.ACQUIRED),
        (holding(10), LeaseDecision.ELSEWHERE),
        (holding(0.001), LeaseDecision.ELSEWHERE),
        (holding(0), LeaseDecision.ACQUIRED),
        (holding(-100), LeaseDecision.ACQUIRED),
        (holding(10, "me"), LeaseDecision.RENEWED),
        # It stood still for longer than its lease: others had the right to take over, and it begins anew.
        (holding(-1, "me"), LeaseDecision.ACQUIRED),
    ],
)
def test_a_duty_belongs_to_its_holder_until_it_lapses(
    found: LeaderLease | None, expected: LeaseDecision
) -> None:
    assert decide_lease(found, "me", now=NOW, lease=LEASE) is expected


@pytest.mark.fault(50)
def test_no_one_waits_for_a_holder_whose_clock_was_a_day_ahead() -> None:
    assert decide_lease(holding(86_400), "me", now=NOW, lease=LEASE) is LeaseDecision.ACQUIRED
    # A few seconds are between any two machines.
    assert decide_lease(holding(20), "me", now=NOW, lease=LEASE) is LeaseDecision.ELSEWHERE
