"""What a series that gets a version later takes over of what was told of it."""

import pytest

from farm.core.results.history.changes.breaks import Series, VersionBreak
from farm.core.results.history.changes.points import BASELINE, Cause


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
