"""A series that was measured only before a change, or only since, hides it from no other."""

import math
from collections.abc import Callable

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch

DAY = 20
SLOWER = math.log(1.1)
VARIANTS = (BASELINE, "int8", "fp16", "late")


def is_retired(network: str, variant: str, day: int) -> bool:
    """The last variant is not measured any more since day 10."""
    return variant != "late" or day < 10


def is_new_with_the_version(network: str, variant: str, day: int) -> bool:
    """The last variant is measured since the change."""
    return variant != "late" or day >= DAY


def is_compared_once(network: str, variant: str, day: int) -> bool:
    """Each network but the first is measured on one day, as by `farm compare`."""
    return network == "n0" or 3 * int(network[1:]) == day


COMES_AND_GOES = [is_retired, is_new_with_the_version, is_compared_once]


def sketch(is_measured: Callable[[str, str, int], bool], kind: str) -> Sketch:
    """A change of all times with a new version of a kind."""
    return Sketch(
        days=2 * DAY,
        networks=14 if is_measured is is_compared_once else 1,
        variants=VARIANTS,
        noise=0.005,
        wander=0.01,
        is_measured=is_measured,
        shifts=(Shift(day=DAY, delta=SLOWER, holds_for=lambda *_: True),),
        versions={(kind, "", "", ""): ((DAY, f"{kind}-2"),)},
    )


@pytest.mark.parametrize("is_measured", COMES_AND_GOES)
@pytest.mark.parametrize("kind", ["os", "program"])
def test_what_moves_all_times_is_told_where_series_come_and_go(
    is_measured: Callable[[str, str, int], bool], kind: str
) -> None:
    (change,) = detect(sketch(is_measured, kind).points())
    assert (change.cause, dict(change.scope)) == (Cause(kind), {kind: f"{kind}-2"})
    assert change.delta == pytest.approx(SLOWER, abs=0.02)
    assert change.day == FIRST_DAY + DAY
    assert change.told <= change.day + 2


def test_a_program_is_found_whose_series_are_never_measured_with_others() -> None:
    """Two harnesses take turns; one gets a new program."""
    history = Sketch(
        days=2 * DAY,
        variants=("alone", "other"),
        networks=2,
        noise=0.005,
        is_measured=lambda network, variant, day: day % 2 == int(network[1:]),
        shifts=(Shift(day=DAY, delta=SLOWER, holds_for=lambda device, network, variant: network == "n0"),),
        versions={("program", "", "n0", ""): ((DAY, "program-2"),)},
    )
    points = [
        point._replace(harness=point.network, log_speedup=math.nan, variant=BASELINE, network=point.series)
        for point in history.points()
    ]
    (change,) = detect(points)
    assert (change.cause, dict(change.scope)) == (Cause.PROGRAM, {"program": "program-2"})
    assert change.delta == pytest.approx(SLOWER, abs=0.02)


def test_a_script_is_compared_with_itself_after_another_ran_once() -> None:
    rows = [
        ("other", 0, 1.0, "x"),
        *(("own", day, 2.0 + 0.01 * (day % 2), "f1") for day in range(1, 4)),
        ("own", 4, 2.0 + math.log(2), "f2"),
    ]
    template = Sketch(devices=1, networks=1, variants=(BASELINE,), days=1).points()[0]
    points = [
        template._replace(series=series, network=series, day=day, log_time=log_time, file=file)
        for series, day, log_time, file in rows
    ]
    (change,) = detect(points)
    assert (change.series, change.cause, change.told) == ("own", Cause.FILE, 4)


def test_a_build_is_the_cause_though_the_first_series_of_the_device_was_retired() -> None:
    history = Sketch(
        devices=1,
        networks=2,
        days=60,
        noise=0.005,
        wander=0.004,
        is_measured=lambda network, variant, day: (network, variant) != ("n0", BASELINE) or day < 10,
        shifts=(Shift(day=40, delta=SLOWER, holds_for=lambda *_: True),),
        versions={("os", "", "", ""): ((40, "os-2"),)},
    )
    (change,) = detect(history.points())
    assert (change.cause, change.day) == (Cause.OS, FIRST_DAY + 40)
