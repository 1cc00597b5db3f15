"""A wall clock that is set: nobody believes it at once, and everybody in the end."""

from datetime import timedelta

import pytest

from farm.clock import ADOPT_AFTER_S, SystemClock


class Machine:
    """A machine whose wall clock can be set."""

    def __init__(self, *, adopts: bool = True) -> None:
        self.wall_s, self.passed_s = 1_800_000_000.0, 1000.0
        self.clock = SystemClock(adopts=adopts, wall_s=lambda: self.wall_s, passed_s=lambda: self.passed_s)
        self.began = self.clock.now()

    def pass_time(self, seconds: float) -> None:
        self.wall_s += seconds
        self.passed_s += seconds

    @property
    def elapsed_s(self) -> float:
        return (self.clock.now() - self.began).total_seconds()


STEPS_S = [86_400.0, -86_400.0, 6.0, -6.0]


@pytest.mark.fault(50)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_time_passes_evenly_while_the_wall_clock_is_wrong_for_a_moment(step_s: float) -> None:
    machine = Machine()
    machine.wall_s += step_s
    assert machine.elapsed_s == 0
    machine.pass_time(60)
    assert (machine.elapsed_s, machine.clock.step_s()) == (60, step_s)
    machine.wall_s -= step_s
    assert (machine.elapsed_s, machine.clock.step_s()) == (60, 0)


@pytest.mark.fault(50)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_wall_clock_that_keeps_its_new_time_is_believed(step_s: float) -> None:
    machine = Machine()
    machine.wall_s += step_s
    for _ in range(int(ADOPT_AFTER_S / 5)):
        assert machine.elapsed_s < ADOPT_AFTER_S + 60
        machine.pass_time(5)
    assert machine.elapsed_s == ADOPT_AFTER_S + step_s
    assert machine.clock.step_s() == 0


def test_a_wall_clock_that_is_set_again_and_again_is_not_believed() -> None:
    machine = Machine()
    for _ in range(20):
        machine.wall_s += 3600
        machine.clock.now()
        machine.pass_time(ADOPT_AFTER_S - 10)
    assert machine.elapsed_s == 20 * (ADOPT_AFTER_S - 10)


def test_small_corrections_are_followed() -> None:
    machine = Machine()
    for _ in range(10):
        machine.wall_s -= 4
        assert machine.clock.step_s() == 0
    assert machine.elapsed_s == -40


def test_where_another_clock_decides_a_step_is_believed_on_its_word_only() -> None:
    machine = Machine(adopts=False)
    machine.wall_s += 3600
    machine.clock.now()
    machine.pass_time(10 * ADOPT_AFTER_S)
    assert machine.elapsed_s == 10 * ADOPT_AFTER_S
    machine.clock.adopt_step()
    assert machine.elapsed_s == 10 * ADOPT_AFTER_S + 3600


def test_the_machines_own_clocks_agree() -> None:
    clock = SystemClock()
    assert clock.step_s() == 0
    assert abs(clock.now() - SystemClock().now()) < timedelta(seconds=1)
