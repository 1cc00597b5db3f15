"""Deadlines are compared by one clock and dated by others: clocks that disagree are noticed."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.clock import ADOPT_AFTER_S, SystemClock
from farm.core.errors import FarmBusy
from farm.database.clock_skew import ClockCheck, clock_offset
from farm.database.engine import Database


class OffClock(SystemClock):
    """This machine's clock, some seconds ahead, whatever is said of its wall clock."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__()
        self.ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class SteppedClock(SystemClock):
    """The clock of a machine that stood still for an hour, and whose wall clock was put right since."""

    def __init__(self) -> None:
        self.ahead, self.passed_s = timedelta(hours=-1), 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return self.passed_s

    def adopt_step(self) -> None:
        self.ahead = timedelta(0)


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
    clock = OffClock(-60)
    check = ClockCheck(clock)
    check.demand()
    agrees = database.read(check.look)
    assert agrees is not is_postgres(database)
    if not agrees:
        with pytest.raises(FarmBusy, match=r"-60 s|-59 s"):
            check.demand()
    clock.ahead = timedelta(0)
    assert database.read(check.look)
    check.demand()


@pytest.mark.fault(50)
def test_a_machine_whose_wall_clock_agrees_again_goes_on_after_a_while(database: Database) -> None:
    """As after it was suspended; not at once, because the database may be on the same machine."""
    clock = SteppedClock()
    check = ClockCheck(clock)
    seen = []
    for _ in range(3):
        seen.append(database.read(check.look))
        clock.passed_s += ADOPT_AFTER_S / 2
    assert seen == ([False, False, True] if is_postgres(database) else [True] * 3)


@pytest.mark.invariant("I11")
@pytest.mark.fault(50)
def test_a_process_whose_clock_is_off_writes_nothing(database: Database) -> None:
    clock = OffClock(3600)
    database.before_write = ClockCheck(clock).compare
    if not is_postgres(database):
        database.write(lambda connection: None)
        return
    with pytest.raises(FarmBusy, match=r"\+3600 s|\+3599 s"):
        database.write(lambda connection: None)
    clock.ahead = timedelta(0)
    database.write(lambda connection: None)


def test_what_the_question_took_is_held_against_no_one(database: Database) -> None:
    class SlowAnswers(SystemClock):
        """As if a minute passed between asking and hearing."""

        asked = False

        def now(self) -> datetime:
            late = timedelta(seconds=60 if self.asked else 0)
            self.asked = True
            return datetime.now(UTC) + late

    assert database.read(clock_offset, SlowAnswers()) == timedelta(0)
