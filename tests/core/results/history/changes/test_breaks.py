"""What a series that gets a version later takes over of what was told of it."""

from collections.abc import Callable

import pytest

from farm.core.results.history.changes.breaks import Series, VersionBreak
from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch


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
    [
        ("os", ("", ""), lambda n, v: True),
        ("program", ("", ""), lambda n, v: v != BASELINE),
        ("file", ("n0", "int8"), lambda n, v: (n, v) == ("n0", "int8")),
    ],
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
