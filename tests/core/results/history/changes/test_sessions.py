"""Sessions of a day: what is measured together, and that a later session takes nothing back."""

import math
from collections.abc import Sequence
from itertools import count
from random import Random

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause, Point

TWICE = math.log(2)


def matrix(number: int, day: int, *devices: str, script: str, log_time: float, file: str) -> list[Point]:
    """The points of one matrix of a script without a baseline; each device ends half a second later."""
    return [
        Point(
            series=f"{device}/{script}",
            device=device,
            network=script,
            variant=BASELINE,
            harness=script,
            day=day,
            time=f"{number:03}.{5 * at}",
            log_time=log_time + 0.01 * (number % 2),
            se_time=0.005,
            log_speedup=math.nan,
            se_speedup=math.nan,
            file=file,
            program="p",
            os="o",
            session=str(number),
        )
        for at, device in enumerate(devices)
    ]


def before() -> list[Point]:
    """Another script once on one phone, and then the own one twice on both, hours apart."""
    return [
        *matrix(1, 0, "d0", script="other", log_time=1.0, file="x"),
        *matrix(2, 0, "d0", "d1", script="own", log_time=2.0, file="f1"),
        *matrix(3, 0, "d0", "d1", script="own", log_time=2.0, file="f1"),
    ]


def slower(number: int = 4) -> list[Point]:
    return matrix(number, 0, "d0", "d1", script="own", log_time=2.0 + TWICE, file="f2")


@pytest.mark.parametrize(
    "later",
    [
        [],
        matrix(5, 0, "d0", "d1", script="third", log_time=0.5, file="y"),
        [*slower(5), *matrix(6, 0, "d0", script="other", log_time=1.0, file="x")],
        [*matrix(5, 0, "d1", script="other", log_time=1.0, file="x"), *slower(6), *slower(7)],
    ],
)
def test_a_doubled_time_is_told_on_both_phones_whatever_is_measured_later(later: Sequence[Point]) -> None:
    (change,) = detect([*before(), *slower(), *later])
    assert (change.cause, set(change.evidence)) == (Cause.FILE, {"d0/own", "d1/own"})
    assert change.delta == pytest.approx(TWICE, abs=0.05)


def test_sessions_of_a_day_have_a_level_each() -> None:
    """On each day a matrix whose level wanders, and one of another script, which gets a new file."""
    points = []
    for day in range(20):
        is_new = day >= 10
        log_time, file = 2.0 + 0.1 * is_new, "f2" if is_new else "f1"
        points += matrix(2 * day, day, "d0", script="hot", log_time=1.0 + 0.02 * (day % 3), file="x")
        points += matrix(2 * day + 1, day, "d0", script="own", log_time=log_time, file=file)
    (change,) = detect(points)
    assert (change.series, change.cause) == ("d0/own", Cause.FILE)
    assert change.delta == pytest.approx(0.1, abs=0.02)


def measured(session: int, hour: int, device: str, *, day: int, os: str = "o1", level: float = 2.0) -> Point:
    """One series of one device in one session."""
    (point,) = matrix(session, day, device, script="own", log_time=level, file="f")
    return point._replace(time=f"{hour:02}", os=os)


def test_a_matrix_that_another_phone_ends_late_does_not_undo_a_build_that_was_new_meanwhile() -> None:
    """One matrix at eight on one phone and at six in the evening on the other, and another one between."""
    points = []
    for day in range(20):
        is_new = day >= 10
        morning = ("o2", 2.5) if day > 10 else ("o1", 2.0)
        later = ("o2", 2.5) if is_new else ("o1", 2.0)
        points += [
            measured(2 * day, 8, "d1", day=day),
            measured(2 * day + 1, 9, "d2", day=day, os=morning[0], level=morning[1]),
            measured(2 * day, 18, "d2", day=day, os=later[0], level=later[1]),
        ]
    (change,) = detect(points)
    assert (change.series, change.cause, change.day, change.version) == ("d2/own", Cause.OS, 10, "o2")
    assert change.delta == pytest.approx(0.5, abs=0.05)


@pytest.mark.long
def test_matrices_that_begin_later_on_other_phones_change_nothing_that_was_told() -> None:
    """A build that is just found by its phone's own tests, and then eleven builds that change nothing."""
    random, session = Random(3), count()
    points = []
    for day in range(25):
        for at in range(12):
            is_new, is_last = at == 0 and day >= 20, at > 0 and day == 24
            os = "o2" if is_new else f"o-d{at}" if is_last else "o1"
            level = 2.0 + 0.045 * is_new + random.gauss(0, 0.02)
            points.append(measured(next(session), 1 + at, f"d{at}", day=day, os=os, level=level))
    (told,) = detect(points[:-11])
    assert (told.series, told.version, told.told) == ("d0/own", "o2", 24)
    assert detect(points)[0] == told


def test_points_of_one_moment_have_an_order_that_does_not_depend_on_names() -> None:
    """Two sessions at the same time of each day, on phones that measure the same."""
    random, answers = Random(1), set()
    levels = [(2.0 + 0.5 * (day >= 15) + random.gauss(0, 0.02), random.gauss(0, 0.02)) for day in range(30)]
    for device in ("d0", "d1", "d2", "d3", "d4", "d5"):
        points = []
        for day, (level, more) in enumerate(levels):
            os = "o2" if day >= 15 else "o1"
            points += [measured(1, 8, device, day=day, os=os, level=value) for value in (level, level + more)]
        answers.add(tuple((change.delta, change.z, change.told) for change in detect(points)))
    assert len(answers) == 1
