"""How levels wander: what is estimated of the process, and of steps in it."""

import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest

from farm.core.results.history.changes.device_level import wander
from farm.core.results.history.changes.device_level.wander import (
    UNKNOWN_PROCESSES,
    processes,
    shifts,
    step_of_any_process,
)
from farm.core.results.history.changes.noise import Bools, Floats
from farm.core.results.history.changes.planned.conditions import PLANNED_ABSOLUTE
from farm.core.results.history.changes.scans.device_scans import SCAN_DEVICE

DEVICES, SESSIONS = 12, 100


class Wander(NamedTuple):
    """An Ornstein-Uhlenbeck process, and noise of each session."""

    #: Of the process after a day.
    correlation: float
    #: Share of the process in the variance.
    share: float
    #: Standard deviation of both.
    sigma: float


def levels(process: Wander, *, gap: int, seed: int = 1) -> tuple[Floats, Floats, Bools]:
    """Return levels of devices with a session every so many days."""
    random = np.random.default_rng(seed)
    carried = process.correlation**gap
    state = random.normal(size=DEVICES)
    columns = []
    for _ in range(SESSIONS):
        state = carried * state + np.sqrt(1 - carried**2) * random.normal(size=DEVICES)
        noise = np.sqrt(1 - process.share) * random.normal(size=DEVICES)
        columns.append(process.sigma * (np.sqrt(process.share) * state + noise))
    days = np.broadcast_to(np.arange(SESSIONS) * float(gap), (DEVICES, SESSIONS))
    return np.column_stack(columns), days, np.ones((DEVICES, SESSIONS), dtype=bool)


@pytest.mark.parametrize(
    "process", [Wander(0.0, 0.0, 0.01), Wander(0.8, 0.9, 0.02), Wander(0.995, 0.98, 0.04)]
)
def test_steps_by_any_process_scatter_as_their_errors_say_whatever_the_process_is(process: Wander) -> None:
    scores = []
    for seed in range(1, 4):
        of_devices, days, is_known = levels(process, gap=1, seed=seed)
        usual = processes(of_devices, days, is_known & (np.arange(SESSIONS) < 60))
        scores += [
            step_of_any_process(of_devices[device, :end], days[device, :end], after, usual).z
            for device in range(DEVICES)
            for end, after in ((66, 6), (72, 12), (85, 25))
        ]
    assert 0.75 <= np.std(scores) <= 1.3
    assert np.abs(scores).max() < 3.8


def test_a_step_does_not_look_like_a_restless_device() -> None:
    of_devices, days, is_known = levels(Wander(0.8, 0.9, 0.02), gap=1)
    usual = processes(of_devices, days, is_known & (np.arange(SESSIONS) < 75))
    stepped = of_devices + np.where(np.arange(SESSIONS) >= 75, 0.08, 0.0)
    found = [step_of_any_process(own, day, 25, usual) for own, day in zip(stepped, days, strict=True)]
    assert np.mean([step.size for step in found]) == pytest.approx(0.08, abs=0.015)
    assert np.mean([step.z >= 3.8 for step in found]) >= 0.75


def test_a_restless_device_seldom_has_a_step_though_the_others_are_calm() -> None:
    calm, days, is_known = levels(Wander(0.0, 0.0, 0.01), gap=1)
    usual = processes(calm, days, is_known)
    scores = [
        step_of_any_process(own[:end], day[:end], 6, usual).z
        for seed in range(2, 12)
        for own, day in zip(levels(Wander(0.98, 0.98, 0.06), gap=1, seed=seed)[0], days, strict=True)
        for end in (60, 80, 100)
    ]
    # Of 3,600 such scores, 0.9 % were told.
    assert np.mean(np.abs(scores) >= PLANNED_ABSOLUTE) < 0.02


@pytest.mark.parametrize("process", [Wander(0.8, 0.9, 0.012), Wander(0.0, 0.0, 0.006)])
@pytest.mark.parametrize(("is_drift", "length"), [(False, 8), (True, 30)])
def test_a_drift_and_a_step_of_a_level_are_told_apart(process: Wander, is_drift: bool, length: int) -> None:
    of_devices, days, is_known = levels(process, gap=1)
    usual = processes(of_devices, days, is_known & (np.arange(SESSIONS) < 60))
    ramp = length if is_drift else 1
    moved = of_devices + 0.1 * np.clip((np.arange(SESSIONS) - SESSIONS + length + 1) / ramp, 0.0, 1.0)
    found = [shift for shift in shifts(moved, days, is_known, usual) if abs(shift.z) >= SCAN_DEVICE]
    assert len(found) >= 0.75 * DEVICES
    assert np.mean([shift.is_drift for shift in found]) == pytest.approx(float(is_drift), abs=0.2)
    assert np.median([shift.length for shift in found]) == pytest.approx(length, rel=0.34)
    assert np.median([shift.size for shift in found]) == pytest.approx(0.1, abs=0.015)


def test_levels_that_wander_neither_step_nor_drift() -> None:
    scores = []
    for seed in range(3):
        of_devices, days, is_known = levels(Wander(0.9, 0.95, 0.02), gap=1, seed=seed)
        usual = processes(of_devices, days, is_known & (np.arange(SESSIONS) < 60))
        for end in (40, 60, 80, 100):
            found = shifts(of_devices[:, :end], days[:, :end], is_known[:, :end], usual)
            scores += [abs(shift.z) for shift in found]
    assert max(scores) < SCAN_DEVICE


def test_devices_with_few_sessions_say_nothing_of_how_levels_wander() -> None:
    of_devices, days, is_known = levels(Wander(0.8, 0.9, 0.02), gap=1)
    assert processes(of_devices, days, is_known & (np.arange(SESSIONS) < 14)) is UNKNOWN_PROCESSES


def test_many_devices_are_filtered_in_parts_with_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    of_devices, days, is_known = levels(Wander(0.8, 0.9, 0.02), gap=1)
    usual = processes(of_devices, days, is_known)
    at_once = shifts(of_devices, days, is_known, usual)
    monkeypatch.setattr(wander, "_AT_ONCE", 5)
    in_parts = processes(of_devices, days, is_known)
    assert in_parts.likelihood == pytest.approx(usual.likelihood)
    assert in_parts.sigma == pytest.approx(usual.sigma)
    assert np.array(shifts(of_devices, days, is_known, usual)) == pytest.approx(np.array(at_once))


def test_the_memory_of_a_scan_does_not_grow_with_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wander, "_AT_ONCE", 2)
    of_devices, days, is_known = levels(Wander(0.8, 0.9, 0.02), gap=1)

    def peak(count: int) -> int:
        tracemalloc.start()
        usual = processes(of_devices[:count], days[:count], is_known[:count])
        shifts(of_devices[:count], days[:count], is_known[:count], usual)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(DEVICES) < 1.5 * peak(2)
