"""Deadlines are compared by one clock and dated by others: clocks that disagree are noticed."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.clock import SystemClock
from farm.core.errors import FarmBusy
from farm.database.clock_skew import ClockCheck, clock_offset
from farm.database.engine import Database


class OffClock(SystemClock):
    """This machine's clock, some seconds ahead."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def is_postgres(database: Database) -> bool:
    return database.engine.dialect.name != "sqlite"


@pytest.mark.fault(50)
@pytest.mark.parametrize("ahead_s", [-3600, -30, 30, 86_400])
def test_a_clock_that_is_off_is_told_by_how_much(database: Database, ahead_s: float) -> None:
    found = database.read(clock_offset, OffClock(ahead_s)).total_seconds()
    # SQLite has no clock of its own to differ from.
    assert found == pytest.approx(ahead_s if is_postgres(database) else 0, abs=5)


def test_clocks_that_agree_are_off_by_nothing(database: Database) -> None:
    assert database.read(clock_offset, SystemClock()) == timedelta(0)


@pytest.mark.fault(50)
def test_while_clocks_disagree_nothing_may_be_dated_and_then_again(database: Database) -> None:
    check = ClockCheck()
    check.demand()
    agrees = database.read(check.look, OffClock(-60))
    assert agrees is not is_postgres(database)
    if not agrees:
        with pytest.raises(FarmBusy, match=r"-60 s|-59 s"):
            check.demand()
    assert database.read(check.look, SystemClock())
    check.demand()


def test_what_the_question_took_is_held_against_nobody(database: Database) -> None:
    class SlowAnswers(SystemClock):
        """As if a minute passed between asking and hearing."""

        asked = False

        def now(self) -> datetime:
            late = timedelta(seconds=60 if self.asked else 0)
            self.asked = True
            return datetime.now(UTC) + late

    assert database.read(clock_offset, SlowAnswers()) == timedelta(0)
