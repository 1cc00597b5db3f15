"""Changes without a new version: how large they are said to be, what moved, and after how many sessions."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.points import BASELINE, Cause
from farm.core.results.history.changes.scans.device_scans import SCAN_DEVICE, SCAN_DEVICE_SLOW
from farm.core.results.history.changes.scans.ratio_scans import SCAN
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch
from tests.support.session.tiers import quick_first

DAY = 40
VARIANTS = (BASELINE, "int8", "fp16", "int4")
Holds = Callable[[str, str, str], bool]


def everything_but_baselines(device: str, network: str, variant: str) -> bool:
    return device == "d0" and variant != BASELINE


def one_network(device: str, network: str, variant: str) -> bool:
    return device == "d0" and network == "n0" and variant != BASELINE


def one_baseline(device: str, network: str, variant: str) -> bool:
    return (device, network, variant) == ("d0", "n0", BASELINE)


def one_variant_everywhere(device: str, network: str, variant: str) -> bool:
    return (network, variant) == ("n0", "int8")


def one_baseline_everywhere(device: str, network: str, variant: str) -> bool:
    return (network, variant) == ("n0", BASELINE)


SCOPES = [
    (everything_but_baselines, {"device": "d0"}),
    (one_network, {"device": "d0", "network": "n0"}),
    (one_baseline, {}),
    (one_variant_everywhere, {"network": "n0", "variant": "int8"}),
    (one_baseline_everywhere, {"network": "n0", "variant": BASELINE}),
]


@pytest.mark.parametrize(
    ("holds_for", "scope", "times"),
    quick_first([(*scope, times) for times in (1.1, 2.0) for scope in SCOPES], 3),
)
def test_a_change_of_several_series_is_as_large_as_they_show_it(
    holds_for: Holds, scope: dict[str, str], times: float
) -> None:
    history = Sketch(
        devices=4,
        days=60,
        variants=VARIANTS,
        noise=0.005,
        wander=0.01,
        shifts=(Shift(day=DAY, delta=math.log(times), holds_for=holds_for),),
    )
    (change,) = detect(history.points())
    assert dict(change.scope) == scope
    assert change.delta == pytest.approx(math.log(times), abs=0.015)
    assert abs(change.delta - math.log(times)) < 4 * change.se < 0.04


@pytest.mark.parametrize("before", quick_first([8, 12, 20]))
def test_a_doubled_time_is_told_within_five_sessions_of_a_short_history(before: int) -> None:
    history = Sketch(
        days=before + 20,
        variants=VARIANTS,
        networks=1,
        noise=0.005,
        shifts=(
            Shift(
                day=before,
                delta=math.log(2),
                holds_for=lambda device, network, variant: (device, variant) == ("d0", "int8"),
            ),
        ),
    )
    (change,) = detect(history.points())
    assert change.series == "d0/n0/int8"
    assert change.delta == pytest.approx(math.log(2), abs=0.02)
    assert change.day == FIRST_DAY + before
    assert change.told < change.day + 5


@pytest.mark.parametrize("seed", quick_first(range(4), 2))
def test_nothing_is_told_of_a_short_history_without_a_change(seed: int) -> None:
    assert detect(Sketch(days=30, noise=0.03, seed=seed).points()) == []


def test_standard_errors_that_are_ten_times_as_large_as_the_noise_hide_no_step() -> None:
    shift = Shift(day=DAY, delta=0.06, holds_for=lambda *of: of == ("d0", "n0", "int8"))
    points = Sketch(days=DAY + 12, shifts=(shift,)).points()
    (change,) = detect(point._replace(se_speedup=10 * point.se_speedup) for point in points)
    assert change.series == "d0/n0/int8"


def on_first_device(device: str, network: str, variant: str) -> bool:
    return device == "d0"


@pytest.mark.parametrize("delta", [-0.12, 0.12, 0.3])
def test_a_level_that_jumps_and_returns_within_five_sessions_is_no_step_of_a_device(delta: float) -> None:
    shifts = tuple(
        Shift(day=day, delta=size, holds_for=on_first_device)
        for day, size in ((DAY, delta), (DAY + 5, -delta))
    )
    assert detect(Sketch(days=DAY + 20, shifts=shifts).points()) == []


def strongest_score(kept: float, seed: int) -> float:
    """Return the largest score of a device whose level jumps, of which a share is kept from day to day."""
    random = np.random.default_rng(seed)
    devices, levels = np.arange(6), DeviceLevels()
    levels.grow(devices, len(devices))
    wander, scores = np.zeros(len(devices)), [0.0]
    for day in range(DAY + 32):
        wander = 0.9 * wander + random.normal(0, 0.006, len(devices))
        times = wander + random.normal(0, 0.004, len(devices))
        times[0] += 0.15 * kept ** (day - DAY - 20) if day >= DAY + 20 else 0.0
        levels.push(devices, times, tick=day + 1, day=day)
        scores.append(abs(levels.scan(devices)[0].z))
    return max(scores)


@pytest.mark.parametrize("seed", [0, 3])
def test_a_level_that_jumps_and_slowly_returns_is_no_step_of_a_device(seed: int) -> None:
    assert strongest_score(0.85, seed) < SCAN < strongest_score(1.0, seed)


@pytest.mark.parametrize(("delta", "sessions"), [(0.12, 6), (math.log(2), 3)])
def test_a_step_of_a_device_waits_for_six_sessions_unless_it_is_large(delta: float, sessions: int) -> None:
    shift = Shift(day=DAY, delta=delta, holds_for=on_first_device)
    (change,) = detect(Sketch(days=DAY + 20, shifts=(shift,)).points())
    assert (dict(change.scope), change.day) == ({"device": "d0"}, FIRST_DAY + DAY)
    assert change.told - change.day + 1 == sessions


@pytest.mark.parametrize("delta", [-0.1, 0.1])
def test_a_device_that_drifts_is_told_once_and_as_a_drift(delta: float) -> None:
    shift = Shift(day=DAY, delta=delta, ramp=30, holds_for=on_first_device)
    (change,) = detect(Sketch(days=DAY + 60, shifts=(shift,)).points())
    assert (change.cause, dict(change.scope)) == (Cause.DRIFT, {"device": "d0"})
    assert abs(change.day - FIRST_DAY - DAY) <= 10
    assert change.told <= FIRST_DAY + DAY + 30
    assert 0 < change.delta / delta <= 1


def test_a_device_that_doubles_its_times_after_a_drift_is_told_again() -> None:
    drift = Shift(day=DAY, delta=0.06, ramp=30, holds_for=on_first_device)
    step = Shift(day=DAY + 60, delta=math.log(2), holds_for=on_first_device)
    changes = detect(Sketch(days=DAY + 75, shifts=(drift, step)).points())
    assert [change.cause for change in changes] == [Cause.DRIFT, Cause.DEVICE]
    assert changes[1].day == FIRST_DAY + DAY + 60
    assert changes[1].delta == pytest.approx(math.log(2), abs=0.05)


def test_a_step_that_its_first_sessions_do_not_confirm_is_told_later_if_it_is_as_sure_as_a_drift() -> None:
    random = np.random.default_rng(1)
    devices, levels, found = np.arange(6), DeviceLevels(), []
    levels.grow(devices, len(devices))
    for day in range(DAY + 26):
        times = random.normal(0, 0.006, len(devices))
        if day >= DAY + 12:
            times[0] += 0.1
        elif day >= DAY:
            times[0] += 0.16 if (day - DAY) % 3 == 0 else 0.05
        levels.push(devices, times, tick=day + 1, day=day)
        found.append(levels.scan(devices)[0])
    assert all(shift.z == 0.0 for shift in found[DAY + 6 : DAY + 12])
    assert (found[-1].is_drift, found[-1].length) == (False, 26)
    assert found[-1].z >= SCAN_DEVICE_SLOW


@pytest.mark.parametrize("sessions", range(6, 13))
def test_a_step_is_as_sure_at_each_number_of_sessions(sessions: int) -> None:
    random = np.random.default_rng(2)
    devices, levels = np.arange(6), DeviceLevels()
    levels.grow(devices, len(devices))
    for day in range(DAY + sessions):
        times = random.normal(0, 0.006, len(devices)) + np.where((devices == 0) & (day >= DAY), 0.06, 0.0)
        levels.push(devices, times, tick=day + 1, day=day)
    shift = levels.scan(devices)[0]
    assert (shift.is_drift, shift.length) == (False, sessions)
    assert shift.z >= SCAN_DEVICE


@pytest.mark.long
def test_a_drift_of_months_is_told() -> None:
    """Of the latest 80 sessions, all would be within it."""
    shift = Shift(day=60, delta=0.05, ramp=90, holds_for=lambda d, n, v: (d, n, v) == ("d1", "n0", "int8"))
    (change,) = detect(Sketch(days=200, noise=0.02, shifts=(shift,)).points())
    assert (change.cause, change.series) == (Cause.DRIFT, "d1/n0/int8")


def test_a_drift_that_follows_a_build_is_told_beside_it() -> None:
    """The build moved all times, and no ratio: a ratio that drifts in its direction is no part of that."""
    build = Shift(day=30, delta=0.06, holds_for=lambda d, n, v: d == "d1")
    drift = Shift(day=60, delta=0.08, ramp=50, holds_for=lambda d, n, v: (d, n, v) == ("d1", "n0", "int8"))
    versions = {("os", "d1", "", ""): ((30, "o2"),)}
    history = Sketch(days=100, noise=0.02, wander=0.006, shifts=(build, drift), versions=versions)
    first, second = detect(history.points())
    assert (first.cause, second.series) == (Cause.OS, "d1/n0/int8")
