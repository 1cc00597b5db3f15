"""Versions that change nothing are not blamed for what happens at the same time."""

from collections.abc import Mapping

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch

DAY = 30
Versions = Mapping[tuple[str, str, str, str], tuple[tuple[int, str], ...]]
PROGRAM: Versions = {("program", "", "", ""): ((DAY, "program-2"),)}
BUILD: Versions = {("os", device, "", ""): ((DAY, "os-2"),) for device in ("d0", "d1")}


def everywhere(device: str, network: str, variant: str) -> bool:
    return True


def hot_room(days: int) -> tuple[Shift, ...]:
    return (
        Shift(day=DAY, delta=0.06, holds_for=everywhere),
        Shift(day=DAY + days, delta=-0.06, holds_for=everywhere),
    )


@pytest.mark.parametrize(("versions", "days"), [(PROGRAM, 2), (BUILD, 2), (BUILD, 12)])
def test_a_version_is_not_blamed_for_a_room_that_grew_hot(versions: Versions, days: int) -> None:
    """Of a program that all devices got, nothing tells a room that stays hot: see what detection misses."""
    sketch = Sketch(devices=7, days=70, wander=0.006, shifts=hot_room(days), versions=versions)
    assert detect(sketch.points()) == []


def test_a_build_that_slows_its_devices_down_is_told_beside_others_that_stay() -> None:
    slow = Shift(day=DAY, delta=0.06, holds_for=lambda device, network, variant: device in ("d0", "d1"))
    (change,) = detect(Sketch(devices=7, days=70, wander=0.006, shifts=(slow,), versions=BUILD).points())
    assert (change.cause, dict(change.scope)) == (Cause.OS, {"os": "os-2"})


@pytest.mark.parametrize("devices", [3, 6])
def test_a_file_of_all_devices_is_not_blamed_for_what_one_of_them_shows(devices: int) -> None:
    """By the mean of all, the file would be some percent slower."""
    one = Shift(day=DAY, delta=0.18, holds_for=lambda *series: series == ("d1", "n0", "int8"))
    versions = {("file", "", "n0", "int8"): ((DAY, "file-2"),)}
    told = detect(Sketch(devices=devices, days=50, shifts=(one,), versions=versions, seed=2).points())
    assert [change.series for change in told] == ["d1/n0/int8"]


def test_a_file_whose_baseline_gets_another_one_on_the_next_day_waits_for_it() -> None:
    """The first two sessions of the file have one of the other."""
    slow = Shift(day=DAY + 1, delta=0.05, holds_for=lambda device, _, variant: variant == BASELINE)
    versions = {
        ("file", "", "n0", "int8"): ((DAY, "file-2"),),
        ("file", "", "", BASELINE): ((DAY + 1, "file-2"),),
    }
    sketch = Sketch(devices=6, networks=1, days=60, noise=0.006, shifts=(slow,), versions=versions)
    changes = detect(sketch.points())
    assert [(change.cause, dict(change.scope)) for change in changes] == [
        (Cause.FILE, {"network": "n0", "variant": BASELINE})
    ]


def test_a_file_is_not_tested_for_as_long_as_one_device_is_seldom_measured() -> None:
    """What is kept of the others would end with two sessions before the file, of which both are broken."""
    sketch = Sketch(
        devices=4,
        days=112,
        versions={("file", "", "n0", "int8"): ((DAY, "file-2"),)},
        skips=lambda device, day: device == "d3" and day >= DAY - 2 and day % 4 > 0,
        broken={("d0/n0/int8", day): -0.12 for day in (DAY - 2, DAY - 1)},
    )
    assert detect(sketch.points()) == []


def test_a_step_of_one_device_near_a_build_that_others_got_is_not_one_of_the_others() -> None:
    slow = Shift(day=DAY + 3, delta=0.1, holds_for=lambda device, network, variant: device == "d0")
    versions = {("os", "", "", ""): ((DAY, "os-2"),)}
    told = detect(Sketch(devices=5, days=60, wander=0.006, shifts=(slow,), versions=versions).points())
    assert [change.scope.get("device") for change in told] == ["d0"]


@pytest.mark.parametrize(
    ("kind", "delta", "cause"),
    [
        ("method", 0.1, Cause.METHOD),
        ("os", 0.1, Cause.OS),
        ("os", 0.05, Cause.OS),
        ("none", 0.3, Cause.DEVICE),
    ],
)
def test_what_moves_each_device_by_a_version_of_its_own_is_not_taken_for_the_room(
    kind: str, delta: float, cause: Cause
) -> None:
    """As the builds of a month do on phones of six models. What lasts without a version is no room either."""
    devices = [f"d{number}" for number in range(6)]
    versions = {(kind, device, "", ""): ((DAY, f"{device}-2"),) for device in devices}
    slower = Shift(day=DAY, delta=delta, holds_for=everywhere)
    told = detect(Sketch(devices=6, days=60, wander=0.006, shifts=(slower,), versions=versions).points())
    assert {change.scope.get("device", change.version) for change in told} >= {
        device if kind != "os" else f"{device}-2" for device in devices
    }
    assert {change.cause for change in told} == {cause}


@pytest.mark.parametrize("networks", [("n0",), ("n0", "n1")])
def test_a_program_that_came_after_a_step_is_not_blamed_for_it(networks: tuple[str, ...]) -> None:
    """One device moved three sessions before, in one network or in both."""
    shift = Shift(day=30, delta=0.1, holds_for=lambda d, n, v: d == "d1" and n in networks and v == "int8")
    versions = {("program", "", "", ""): ((33, "p2"),)}
    (change,) = detect(Sketch(shifts=(shift,), versions=versions).points())
    assert (change.cause, change.day) == (Cause.DEVICE, FIRST_DAY + 30)


def test_a_build_that_came_before_a_step_is_not_blamed_for_it() -> None:
    shift = Shift(day=34, delta=0.15, holds_for=lambda d, n, v: d == "d1")
    versions = {("os", "d1", "", ""): ((30, "o2"),)}
    (change,) = detect(Sketch(wander=0.006, shifts=(shift,), versions=versions, seed=2).points())
    assert (change.cause, dict(change.scope), change.day) == (Cause.DEVICE, {"device": "d1"}, FIRST_DAY + 34)
    assert change.delta == pytest.approx(0.15, abs=0.02)
