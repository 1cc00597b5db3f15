"""Detection of changes with two or three sessions: what is large enough is told at once."""

import math
from collections.abc import Sequence

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause, Change, Point
from tests.core.results.history.changes.histories import Shift, Sketch

TWICE = math.log(2)
#: What the noise of a session may be.
NOISE = 0.1


def session(
    number: int,
    *,
    base: float = 2.0,
    variant: float = 1.5,
    file: str = "f1",
    base_file: str = "b1",
    program: str = "p1",
    os: str = "o1",
    with_base: bool = True,
) -> list[Point]:
    """Return the points of one session of a baseline and one variant, by their log times."""

    def point(name: str, log_time: float, log_speedup: float, file: str) -> Point:
        return Point(
            series=f"d/n/{name}",
            device="d",
            network="n",
            variant=name,
            harness="h",
            day=700_000 + number // 2,
            time=f"{number:02}",
            log_time=log_time + 0.01 * (number % 2),
            se_time=0.005,
            log_speedup=log_speedup,
            se_speedup=0.008,
            file=file,
            program=program,
            os=os,
        )

    if not with_base:
        return [point("int8", variant, math.nan, file)]
    return [point(BASELINE, base, math.nan, base_file), point("int8", variant, base - variant, file)]


def told(*sessions: Sequence[Point]) -> list[Change]:
    return detect(point for points in sessions for point in points)


def test_a_file_that_doubles_a_time_is_told_by_the_first_session_that_has_it() -> None:
    (change,) = told(session(0), session(1, variant=1.5 + TWICE, file="f2"))
    assert (change.series, change.cause) == ("d/n/int8", Cause.FILE)
    assert change.delta == pytest.approx(TWICE, abs=0.05)
    assert change.told == change.day


def test_a_file_that_doubles_a_time_without_a_baseline_is_told() -> None:
    (change,) = told(session(0, with_base=False), session(1, variant=1.5 + TWICE, file="f2", with_base=False))
    assert (change.series, change.cause) == ("d/n/int8", Cause.FILE)


def test_the_baseline_is_named_if_its_file_halved_the_ratios() -> None:
    (change,) = told(session(0), session(1, base=2.0 + TWICE, base_file="b2"))
    assert (change.series, change.cause) == ("d/n/base", Cause.FILE)
    assert change.delta == pytest.approx(TWICE, abs=0.05)


def test_a_program_that_doubles_all_times_is_told() -> None:
    (change,) = told(session(0), session(1, base=2.0 + TWICE, variant=1.5 + TWICE, program="p2"))
    assert (change.cause, change.scope) == (Cause.PROGRAM, {"program": "p2"})


def test_a_build_that_doubles_the_time_of_a_variant_is_told() -> None:
    (change,) = told(session(0), session(1, variant=1.5 + TWICE, os="o2"))
    assert (change.series, change.cause) == ("d/n/int8", Cause.OS)


@pytest.mark.parametrize("before", [1, 2, 3, 4])
@pytest.mark.parametrize("with_base", [True, False])
def test_what_may_be_noise_is_not_told_by_the_first_session(before: int, with_base: bool) -> None:
    sessions = [session(number, with_base=with_base) for number in range(before)]
    assert told(*sessions, session(before, variant=1.5 + NOISE, file="f2", with_base=with_base)) == []


@pytest.mark.parametrize("before", [2, 5, 12])
def test_a_doubled_time_is_told_at_once_after_any_number_of_sessions(before: int) -> None:
    sessions = [session(number) for number in range(before)]
    (change,) = told(*sessions, session(before, variant=1.5 + TWICE, file="f2"))
    assert change.cause is Cause.FILE


def test_rounds_that_scatter_by_as_much_as_the_change_tell_nothing_at_once() -> None:
    """As on a busy machine: 0.50x by five rounds, whose interval is 0.22x to 1.14x, and then 0.89x."""
    before = [point._replace(se_speedup=0.3, se_time=0.2) for point in session(0)]
    assert told(before, session(1, variant=1.5 - 0.57, file="f2")) == []


def test_a_doubled_time_without_a_new_version_waits_for_more_sessions() -> None:
    assert told(session(0), session(1, variant=1.5 + TWICE)) == []


def test_a_change_that_was_told_by_one_session_is_not_told_again() -> None:
    later = [session(number, variant=1.5 + TWICE, file="f2") for number in range(1, 15)]
    assert len(told(session(0), *later)) == 1


def test_a_return_to_the_old_file_is_a_second_change() -> None:
    first, second = told(
        session(0), session(1, variant=1.5 + TWICE, file="f2"), session(2), session(3), session(4)
    )
    assert first.delta > 0 > second.delta


@pytest.mark.parametrize("variants", [("int8",), ("int8", "fp16", "int4", "float16")])
@pytest.mark.parametrize("before", range(1, 10))
def test_a_large_step_of_a_new_file_is_told_at_once_however_many_sessions_there_were(
    before: int, variants: tuple[str, ...]
) -> None:
    shift = Shift(day=before, delta=2 * TWICE, holds_for=lambda d, n, v: v == "int8")
    sketch = Sketch(
        devices=1,
        networks=1,
        variants=(BASELINE, *variants),
        days=before + 1,
        noise=0.004,
        shifts=(shift,),
        versions={("file", "", "n0", "int8"): ((before, "new"),)},
    )
    (change,) = detect(sketch.points())
    assert (change.series, change.cause) == ("d0/n0/int8", Cause.FILE)


def test_a_step_of_a_tenth_is_told_after_three_sessions_before_it() -> None:
    shift = Shift(day=3, delta=0.1, holds_for=lambda d, n, v: v == "int8")
    sketch = Sketch(
        networks=1,
        variants=(BASELINE, "int8"),
        days=9,
        noise=0.004,
        shifts=(shift,),
        versions={("file", "", "n0", "int8"): ((3, "new"),)},
    )
    (change,) = detect(sketch.points())
    assert change.cause is Cause.FILE
    assert change.delta == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("broken", ["d1/n0/int8", "d1/n0/base"])
@pytest.mark.parametrize("kind", ["file", "os"])
def test_one_broken_session_with_a_new_version_that_other_devices_have_too_is_no_change(
    kind: str, broken: str
) -> None:
    sketch = Sketch(
        days=36,
        versions={(kind, "", "n0", broken.rpartition("/")[2] if kind == "file" else ""): ((30, "new"),)},
        broken={(broken, 30): 0.55},
    )
    assert detect(sketch.points()) == []


def test_one_broken_session_of_the_first_device_with_a_new_file_is_no_change() -> None:
    versions = {("file", device, "n0", "int8"): ((day, "new"),) for device, day in (("d0", 31), ("d1", 30))}
    sketch = Sketch(days=36, versions=versions, broken={("d1/n0/int8", 30): 0.55})
    assert detect(sketch.points()) == []


def test_a_doubled_time_on_one_of_several_devices_is_told_by_the_second_session() -> None:
    shift = Shift(day=30, delta=TWICE, holds_for=lambda *of: of == ("d1", "n0", "int8"))
    versions = {("file", "d1", "n0", "int8"): ((30, "new"),)}
    (change,) = detect(Sketch(days=36, shifts=(shift,), versions=versions).points())
    assert (change.series, change.told - change.day) == ("d1/n0/int8", 1)
