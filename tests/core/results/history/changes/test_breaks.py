"""Versions: what a series that gets one later takes over, and a control level as the version of a device."""

from collections.abc import Callable

import pytest

from farm.core.results.history.changes.breaks import Series, VersionBreak
from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch
from tests.support.session.tiers import quick_first

DAY = 30
FIXED = {("method", "d1", "", ""): ((0, "free"), (DAY, "fixed"))}


def series(variant: str) -> Series:
    return Series(
        row=5,
        name=f"d/n/{variant}",
        device="d",
        device_row=0,
        network="n",
        variant=variant,
        harness="h",
        file="",
        program="",
        os="",
        method="",
    )


def told(size: float, *, is_of_ratios: bool, previous: VersionBreak | None = None) -> VersionBreak:
    return VersionBreak(
        cause=Cause.PROGRAM,
        version="p",
        day=0,
        told_scope={"program": "p"},
        told_size=size,
        is_of_ratios=is_of_ratios,
        previous=previous,
    )


def test_a_program_that_moved_ratios_did_not_move_the_baselines() -> None:
    known = told(0.1, is_of_ratios=True)
    assert (known.size_for(series("int8")), known.size_for(series(BASELINE))) == (0.1, 0.0)
    assert told(0.1, is_of_ratios=False).size_for(series(BASELINE)) == 0.1


def test_a_version_that_was_skipped_counts_and_one_that_was_not_does_not() -> None:
    before = told(0.1, is_of_ratios=False)
    known = told(-0.04, is_of_ratios=True, previous=before)
    assert known.size_for(series("int8")) == pytest.approx(0.06)
    assert known.size_for(series(BASELINE)) == 0.1
    before.tick_by_row[5] = 3
    assert known.size_for(series("int8")) == -0.04
    assert known.size_for(series(BASELINE)) == 0.0


@pytest.mark.parametrize("later", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kind", "part", "moves"),
    quick_first(
        [
            ("file", ("n0", "int8"), lambda n, v: (n, v) == ("n0", "int8")),
            ("os", ("", ""), lambda n, v: True),
            ("program", ("", ""), lambda n, v: v != BASELINE),
        ]
    ),
)
def test_a_version_says_nothing_of_devices_that_never_had_what_it_replaced(
    kind: str, part: tuple[str, str], moves: Callable[[str, str], bool], later: float
) -> None:
    """Two models of phones get a build of their own within a week, two ABIs a program or a file."""

    def shift(model: int, day: int, delta: float) -> Shift:
        return Shift(day=day, delta=delta, holds_for=lambda d, n, v: int(d[1:]) % 2 == model and moves(n, v))

    versions = {
        (kind, f"d{number}", *part): ((0, f"{number % 2}-old"), (30 + 6 * (number % 2), f"{number % 2}-new"))
        for number in range(8)
    }
    shifts = shift(0, 30, 0.1), shift(1, 36, later)
    changes = detect(Sketch(devices=8, shifts=shifts, versions=versions).points())
    found = [(change.cause, change.version, change.day - FIRST_DAY) for change in changes]
    told = [(Cause(kind), "0-new", 30), (Cause(kind), "1-new", 36)]
    assert found == (told if later else told[:1])
    assert all(change.delta == pytest.approx(0.1, abs=0.02) for change in changes)


def moved_with_level(delta: float, *, variants: tuple[str, ...] = ("int8", "fp16"), day: int = DAY) -> Shift:
    return Shift(day=day, delta=delta, holds_for=lambda d, n, v: d == "d1" and v in variants)


@pytest.mark.parametrize("delta", quick_first([0.03, 0.1, -0.05]))
def test_ratios_that_move_with_the_control_level_of_their_device_have_the_method_as_cause(
    delta: float,
) -> None:
    (change,) = detect(Sketch(shifts=(moved_with_level(delta),), versions=FIXED).points())
    assert (change.cause, change.version) == (Cause.METHOD, "fixed")
    assert (change.series, change.scope) == (None, {"device": "d1"})
    assert change.day == FIRST_DAY + DAY
    assert change.told <= change.day + 4
    assert change.delta == pytest.approx(delta, abs=0.015)
    assert len(change.evidence) == 4


def test_what_is_too_small_for_a_scan_is_found_at_once_where_the_control_level_changed() -> None:
    shifts = (moved_with_level(0.02),)
    (planned,) = detect(Sketch(shifts=shifts, versions=FIXED).points())
    assert planned.cause is Cause.METHOD
    assert not any(change.told <= planned.told for change in detect(Sketch(shifts=shifts).points()))


def test_one_series_whose_control_level_changed_is_named() -> None:
    versions = {("method", "d1", "n0", "int8"): ((0, "pinned"), (DAY, "free"))}
    shift = Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: (d, n, v) == ("d1", "n0", "int8"))
    (change,) = detect(Sketch(shifts=(shift,), versions=versions).points())
    assert (change.cause, change.series, change.version) == (Cause.METHOD, "d1/n0/int8", "free")


def test_clocks_that_are_fixed_move_all_times_of_their_device() -> None:
    shift = moved_with_level(0.2, variants=(BASELINE, "int8", "fp16"))
    (change,) = detect(Sketch(shifts=(shift,), versions=FIXED).points())
    assert (change.cause, change.scope, change.day) == (Cause.METHOD, {"device": "d1"}, FIRST_DAY + DAY)
    assert change.delta == pytest.approx(0.2, abs=0.02)


def test_a_control_level_that_moves_nothing_is_no_change() -> None:
    assert detect(Sketch(days=90, versions=FIXED).points()) == []


def test_a_control_level_of_one_device_explains_nothing_on_others() -> None:
    shift = Shift(day=DAY, delta=0.1, holds_for=lambda d, n, v: d == "d2" and v != BASELINE)
    (change,) = detect(Sketch(shifts=(shift,), versions=FIXED).points())
    assert (change.cause, change.scope["device"]) == (Cause.DEVICE, "d2")


def test_a_control_level_that_comes_back_is_a_second_change() -> None:
    versions = {("method", "d1", "", ""): ((0, "free"), (DAY, "fixed"), (60, "free"))}
    shifts = (moved_with_level(0.1), moved_with_level(-0.1, day=60))
    changes = detect(Sketch(days=90, shifts=shifts, versions=versions).points())
    found = [(change.cause, change.version, change.day - FIRST_DAY) for change in changes]
    assert found == [(Cause.METHOD, "fixed", DAY), (Cause.METHOD, "free", 60)]
    assert changes[1].delta == pytest.approx(-0.1, abs=0.015)


def test_of_a_build_and_a_control_level_that_begin_together_the_build_is_named() -> None:
    versions = FIXED | {("os", "d1", "", ""): ((DAY, "os-2"),)}
    (change,) = detect(Sketch(shifts=(moved_with_level(0.1),), versions=versions).points())
    assert (change.cause, change.version) == (Cause.OS, "os-2")


def test_of_a_build_that_all_devices_get_the_control_level_explains_what_only_one_shows() -> None:
    versions = FIXED | {("os", "", "", ""): ((DAY, "os-2"),)}
    (change,) = detect(Sketch(shifts=(moved_with_level(0.1),), versions=versions).points())
    assert (change.cause, change.version) == (Cause.METHOD, "fixed")


def test_a_device_that_was_away_for_weeks_skips_a_version_whose_change_was_told() -> None:
    """It comes back with the next one, which changed nothing."""
    slower = Shift(day=DAY, delta=0.08, holds_for=lambda device, network, variant: variant == "int8")
    sketch = Sketch(
        devices=4,
        networks=1,
        days=80,
        shifts=(slower,),
        versions={("file", "", "n0", "int8"): ((DAY, "file-2"), (DAY + 30, "file-3"))},
        skips=lambda device, day: device == "d3" and DAY - 3 <= day < DAY + 33,
    )
    (change,) = detect(sketch.points())
    assert (change.cause, change.day) == (Cause.FILE, FIRST_DAY + DAY)


@pytest.mark.parametrize(("noise", "seed"), [(0.03, 1), (0.05, 4)])
def test_a_device_that_gets_a_version_late_does_not_end_the_test_of_the_others(
    noise: float, seed: int
) -> None:
    """Each device is measured once in five days, and one of five is away while the others get the program."""
    shift = Shift(day=120, delta=0.05, holds_for=lambda d, n, v: n == "n0" and v != BASELINE)
    sketch = Sketch(
        devices=5,
        days=220,
        noise=noise,
        shifts=(shift,),
        versions={("program", "", "", ""): ((120, "p2"),)},
        skips=lambda d, day: day % 5 != int(d[1:]) or (d == "d3" and 118 <= day < 147),
        seed=seed,
    )
    (change,) = detect(sketch.points())
    assert (change.cause, change.day) == (Cause.PROGRAM, FIRST_DAY + 120)
