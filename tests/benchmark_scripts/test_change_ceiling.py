"""The chance to find a change is that of a test that knows all but its size."""

import math
from dataclasses import replace
from statistics import NormalDist

import pytest

from benchmarks.change_ceiling import chance_to_find
from benchmarks.farm_history import FIRST_DAY, Cell, Farm, Simulation
from benchmarks.regressions import observe
from farm.core.results.history.changes.points import BASELINE, Cause

#: One baseline and one variant, each day, without a level that wanders.
FARM = Farm(
    devices=1,
    networks=1,
    variants=2,
    noise=(0.02, 0.02),
    wander=0.0,
    wander_size=0.0,
    outages=0.0,
    late=0.0,
    retracted=0.0,
)
#: 50 sessions before and 25 since.
SESSIONS = 1 / 50 + 1 / 25


def is_variant(cell: Cell) -> bool:
    return cell.variant != BASELINE


def is_any(cell: Cell) -> bool:
    return True


def chance(farm: Farm, cause: Cause, *, of_all: bool, delta: float = 0.02, ramp: int = 0) -> float:
    sim = Simulation(farm, seed=1)
    is_in = is_any if of_all else is_variant
    sim.change(cause, 0.02, is_in, day=FIRST_DAY + 100, delta=delta, ramp=ramp)
    history = sim.history()
    observe(history)
    (event,) = history.events
    return chance_to_find(event, history, farm)


def expected(variance: float, least: float) -> float:
    return NormalDist().cdf(0.02 / math.sqrt(variance) - least)


def test_one_series_whose_device_never_wanders_is_judged_by_its_own_time() -> None:
    variance = 0.02**2 * (1 + 1 / FARM.rounds) * SESSIONS
    assert chance(FARM, Cause.FILE, of_all=False) == pytest.approx(expected(variance, 3.5), abs=1e-3)


def test_one_series_whose_device_wanders_far_is_judged_by_its_ratio() -> None:
    farm = replace(FARM, wander_size=10.0)
    variance = 0.02**2 * (2 + 1 / FARM.rounds) * SESSIONS
    assert chance(farm, Cause.FILE, of_all=False) == pytest.approx(expected(variance, 3.5), abs=1e-3)
    assert chance(farm, Cause.OS, of_all=True) < 0.001


def test_what_no_version_announces_needs_the_score_of_a_scan() -> None:
    variance = 0.02**2 * (1 + 1 / FARM.rounds) * SESSIONS
    assert chance(FARM, Cause.DEVICE, of_all=False) == pytest.approx(expected(variance, 4.7), abs=1e-3)


def test_a_drift_is_told_apart_worse_than_a_step_while_it_grows() -> None:
    farm = replace(FARM, days=150)
    assert chance(farm, Cause.DRIFT, of_all=False, ramp=45) < chance(farm, Cause.DRIFT, of_all=False, ramp=5)


def test_a_change_that_is_not_there_is_hardly_found() -> None:
    assert chance(FARM, Cause.FILE, of_all=False, delta=0.0) < 0.001


def test_levels_that_resemble_each_other_from_day_to_day_hide_a_step_of_all() -> None:
    sudden = replace(FARM, wander_size=0.02)
    slow = replace(sudden, wander=0.9)
    assert chance(slow, Cause.OS, of_all=True, delta=0.03) < chance(sudden, Cause.OS, of_all=True, delta=0.03)


@pytest.mark.parametrize(("shown", "events"), [(0, 0), (1, 2)])
def test_a_change_that_is_undone_before_a_session_shows_it_is_none(shown: int, events: int) -> None:
    sim = Simulation(FARM, seed=1)
    for day, delta in ((100, 0.1), (120, -0.1)):
        sim.change(Cause.DEVICE, 0.1, is_any, day=FIRST_DAY + day, delta=delta)
    history = sim.history()
    away = range(FIRST_DAY + 100, FIRST_DAY + 130 - shown)
    history.points = [p for p in history.points if p.day not in away or p.day in away[20 - shown : 20]]
    observe(history)
    assert len(history.events) == events
