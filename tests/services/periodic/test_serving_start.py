"""When nobody may be called late: while the farm could not be reached (I10)."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.services.periodic.leader_election import ServingPeriod

START = datetime(2026, 11, 20, tzinfo=UTC)


def serving() -> ServingPeriod:
    return ServingPeriod(START, START, timedelta(seconds=15))


def test_ticks_in_time_leave_the_start_where_it_was() -> None:
    own = serving()
    assert {own.reached(START + timedelta(seconds=5 * n)) for n in range(100)} == {START}


@pytest.mark.parametrize("gap_s", [16, 600, 86400])
def test_after_a_break_serving_begins_again(gap_s: int) -> None:
    own = serving()
    own.reached(START + timedelta(seconds=5))
    again = START + timedelta(seconds=5 + gap_s)
    assert own.reached(again) == again
    assert own.reached(again + timedelta(seconds=5)) == again


def test_a_clock_that_went_back_is_a_break_too() -> None:
    own = serving()
    own.reached(START + timedelta(seconds=5))
    back = START - timedelta(days=1)
    assert own.reached(back) == back
    assert own.reached(back + timedelta(seconds=5)) == back
