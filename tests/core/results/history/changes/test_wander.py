"""How levels wander: what is estimated of the process, and of steps in it."""

import numpy as np
import pytest

from farm.core.results.history.changes.candidates import PLANNED_ABSOLUTE
from farm.core.results.history.changes.noise import Bools, Floats
from farm.core.results.history.changes.wander import (
    UNKNOWN_PROCESSES,
    UNKNOWN_WANDER,
    Wander,
    estimated_wander,
    moderated_spread,
    pooled_spread,
    processes,
    spread_of,
    step_of_any_process,
    steps,
)

DEVICES, SESSIONS = 12, 100


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


@pytest.mark.parametrize("gap", [1, 3])
def test_the_correlation_of_days_is_found_whatever_the_days_between_sessions(gap: int) -> None:
    found = estimated_wander(*levels(Wander(0.9, 0.9, 0.02), gap=gap), UNKNOWN_WANDER)
    assert 0.7 <= found.correlation <= 0.98
    assert found.sigma == pytest.approx(0.02, rel=0.35)


def test_noise_without_a_memory_has_no_correlation_of_sessions() -> None:
    found = estimated_wander(*levels(Wander(0.0, 0.0, 0.01), gap=1), UNKNOWN_WANDER)
    assert found.correlation * found.share < 0.3
    assert found.sigma == pytest.approx(0.01, rel=0.2)


def test_a_few_sessions_leave_what_was_known_before() -> None:
    known, days, is_known = levels(Wander(0.9, 0.9, 0.02), gap=1)
    assert estimated_wander(known[:, :3], days[:, :3], is_known[:, :3], UNKNOWN_WANDER) == UNKNOWN_WANDER


@pytest.mark.parametrize(("gap", "process"), [(1, Wander(0.8, 0.9, 0.02)), (7, Wander(0.8, 0.9, 0.02))])
def test_steps_without_a_change_scatter_as_their_standard_errors_say(gap: int, process: Wander) -> None:
    of_devices, days, is_known = levels(process, gap=gap)
    scores = [
        (size / error / process.sigma)[0]
        for end in range(25, SESSIONS, 5)
        for size, error in [
            steps(of_devices[:, end - 25 : end], days[:, end - 25 : end], is_known[:, :25], [5], process)
        ]
    ]
    assert np.concatenate(scores).std() == pytest.approx(1.0, abs=0.2)


def test_a_step_is_estimated_without_bias_and_sessions_that_do_not_exist_count_for_nothing() -> None:
    process = Wander(0.8, 0.9, 0.02)
    quiet = np.zeros((1, 25))
    quiet[:, 20:] = 0.1
    days = np.arange(25.0)[None, :]
    is_known = np.ones((1, 25), dtype=bool)
    size, error = steps(quiet, days, is_known, [5], process)
    assert size[0, 0] == pytest.approx(0.1, abs=1e-6)
    is_known[:, :12] = False
    quiet[:, :12] = np.nan
    fewer_size, fewer_error = steps(quiet, days, is_known, [5], process)
    assert fewer_size[0, 0] == pytest.approx(0.1, abs=1e-4)
    assert fewer_error[0, 0] > error[0, 0]


def test_devices_that_differ_say_little_of_each_other() -> None:
    counts = np.full(8, 60, dtype=np.int64)
    alike = pooled_spread(np.full(8, 0.01), counts)
    unequal = pooled_spread(np.geomspace(0.003, 0.03, 8), counts)
    assert unequal.degrees < 6 < alike.degrees
    assert alike.sigma == pytest.approx(0.01483, rel=0.01)


def test_the_spread_of_a_device_is_between_its_own_and_that_of_others() -> None:
    past = np.random.default_rng(2).normal(size=(1, 60)) * 0.05
    own = moderated_spread(past, spread_of(Wander(0.8, 0.9, 0.01)), np.ones(1))
    assert 0.015 < own.sigma[0] < 0.05
    assert own.degrees[0] > 8


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


def test_devices_with_few_sessions_say_nothing_of_how_levels_wander() -> None:
    of_devices, days, is_known = levels(Wander(0.8, 0.9, 0.02), gap=1)
    assert processes(of_devices, days, is_known & (np.arange(SESSIONS) < 14)) is UNKNOWN_PROCESSES
