"""Detection of changes, on small histories with a known one."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.core.results.history.changes.detect import Detector, detect
from farm.core.results.history.changes.points import BASELINE, Cause, Change, Point
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch
from tests.support.session.tiers import quick_first

DAY = 30


def only(changes: list[Change]) -> Change:
    assert len(changes) == 1, changes
    return changes[0]


def file_shift(delta: float, variant: str = "int8") -> Shift:
    return Shift(day=DAY, delta=delta, holds_for=lambda d, n, v: (n, v) == ("n0", variant))


@pytest.mark.parametrize("seed", quick_first(range(1, 12)))
def test_a_history_without_a_change_has_none(seed: int) -> None:
    assert detect(Sketch(days=120, seed=seed).points()) == []


def test_no_points_have_no_changes() -> None:
    assert detect([]) == []


@pytest.mark.parametrize("delta", quick_first([0.03, -0.05, 0.1, 0.05], 2))
def test_a_new_file_that_moves_its_variant_is_the_cause(delta: float) -> None:
    sketch = Sketch(shifts=(file_shift(delta),), versions={("file", "", "n0", "int8"): ((DAY, "new"),)})
    change = only(detect(sketch.points()))
    assert change.cause is Cause.FILE
    assert change.series is None
    assert change.scope == {"network": "n0", "variant": "int8"}
    assert change.day == FIRST_DAY + DAY
    assert change.told <= FIRST_DAY + DAY + 4
    assert change.delta == pytest.approx(delta, abs=0.015)


def test_a_new_file_on_one_device_names_the_series() -> None:
    shift = Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: (d, n, v) == ("d1", "n0", "int8"))
    sketch = Sketch(shifts=(shift,), versions={("file", "d1", "n0", "int8"): ((DAY, "new"),)})
    change = only(detect(sketch.points()))
    assert (change.series, change.cause) == ("d1/n0/int8", Cause.FILE)
    assert change.scope == {}


def test_a_new_file_of_the_baseline_is_named_and_not_the_variants_whose_ratios_it_moves() -> None:
    sketch = Sketch(
        shifts=(file_shift(0.06, BASELINE),), versions={("file", "", "n0", BASELINE): ((DAY, "new"),)}
    )
    change = only(detect(sketch.points()))
    assert change.scope == {"network": "n0", "variant": BASELINE}
    assert change.delta == pytest.approx(0.06, abs=0.02)


def test_versions_that_change_nothing_are_no_change() -> None:
    sketch = Sketch(
        days=90,
        versions={
            ("file", "", "n0", "int8"): ((30, "b"), (60, "c")),
            ("program", "", "", ""): ((40, "b"),),
            ("os", "d1", "", ""): ((50, "b"),),
        },
    )
    assert detect(sketch.points()) == []


def test_a_program_that_moves_all_variants_is_the_cause() -> None:
    shift = Shift(day=DAY, delta=0.05, holds_for=lambda d, n, v: v != BASELINE)
    change = only(
        detect(Sketch(shifts=(shift,), versions={("program", "", "", ""): ((DAY, "p2"),)}).points())
    )
    assert (change.cause, change.scope) == (Cause.PROGRAM, {"program": "p2"})


def test_a_program_that_moves_all_times_moves_no_ratio_and_is_found_all_the_same() -> None:
    shift = Shift(day=DAY, delta=0.05, holds_for=lambda d, n, v: True)
    change = only(
        detect(Sketch(shifts=(shift,), versions={("program", "", "", ""): ((DAY, "p2"),)}).points())
    )
    assert (change.cause, change.scope) == (Cause.PROGRAM, {"program": "p2"})


def test_a_program_that_moves_one_network_has_that_scope() -> None:
    shift = Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: n == "n1" and v != BASELINE)
    change = only(
        detect(Sketch(shifts=(shift,), versions={("program", "", "", ""): ((DAY, "p2"),)}).points())
    )
    assert change.scope == {"program": "p2", "network": "n1"}


def test_of_a_build_and_a_program_on_one_day_the_one_whose_series_moved_is_the_cause() -> None:
    versions = {("program", "", "", ""): ((DAY, "p2"),), ("os", "d1", "", ""): ((DAY, "o2"),)}
    on_device = Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: d == "d1" and v != BASELINE)
    change = only(detect(Sketch(shifts=(on_device,), versions=versions).points()))
    assert (change.cause, change.scope) == (Cause.OS, {"os": "o2"})
    everywhere = Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: v != BASELINE)
    change = only(detect(Sketch(shifts=(everywhere,), versions=versions).points()))
    assert (change.cause, change.scope) == (Cause.PROGRAM, {"program": "p2"})


def test_a_build_that_reaches_devices_one_after_the_other_is_one_change() -> None:
    days = {"d0": 30, "d1": 34, "d2": 41}

    def step_of(device: str, day: int) -> Shift:
        return Shift(day=day, delta=0.08, holds_for=lambda d, n, v: d == device)

    shifts = tuple(step_of(device, day) for device, day in days.items())
    versions = {("os", device, "", ""): ((day, "o2"),) for device, day in days.items()}
    change = only(detect(Sketch(days=75, shifts=shifts, versions=versions).points()))
    assert (change.cause, change.scope, change.day) == (Cause.OS, {"os": "o2"}, FIRST_DAY + 30)


def test_builds_of_different_devices_in_one_week_are_two_changes() -> None:
    def is_first(device: str, network: str, variant: str) -> bool:
        return device in ("d0", "d1")

    sketch = Sketch(
        devices=4,
        shifts=(
            Shift(day=DAY, delta=0.05, holds_for=is_first),
            Shift(day=DAY + 7, delta=0.05, holds_for=lambda d, n, v: not is_first(d, n, v)),
        ),
        versions={
            ("os", f"d{number}", "", ""): ((DAY + 7 * (number // 2), f"new-{number // 2}"),)
            for number in range(4)
        },
    )
    found = detect(sketch.points())
    assert [(change.cause, change.scope) for change in found] == [
        (Cause.OS, {"os": "new-0"}),
        (Cause.OS, {"os": "new-1"}),
    ]
    assert [change.delta for change in found] == pytest.approx([0.05, 0.05], abs=0.015)


@pytest.mark.parametrize(
    ("delta", "seed"), [(0.03, 2), *(pytest.param(0.035, seed, marks=pytest.mark.long) for seed in (4, 5, 6))]
)
def test_a_build_of_one_device_is_told_beside_a_wander_that_hides_it_from_a_scan(
    delta: float, seed: int
) -> None:
    shift = Shift(day=40, delta=delta, holds_for=lambda d, n, v: d == "d1")
    sketch = Sketch(
        wander=0.02,
        variants=(BASELINE, "int8"),
        versions={("os", "d1", "", ""): ((40, "o2"),)},
        seed=seed,
    )
    assert detect(sketch.points()) == []
    change = only(detect(replace(sketch, shifts=(shift,)).points()))
    assert (change.cause, change.scope, change.day) == (Cause.OS, {"os": "o2"}, FIRST_DAY + 40)


def test_a_device_on_which_everything_is_slower_is_the_cause() -> None:
    shift = Shift(day=DAY, delta=0.1, holds_for=lambda d, n, v: d == "d2")
    change = only(detect(Sketch(shifts=(shift,)).points()))
    assert (change.cause, change.scope, change.series) == (Cause.DEVICE, {"device": "d2"}, None)
    assert change.delta == pytest.approx(0.1, abs=0.02)


def test_a_step_of_a_device_is_found_with_a_session_a_week() -> None:
    shift = Shift(day=210, delta=0.1, holds_for=lambda d, n, v: d == "d2")
    sketch = Sketch(days=330, wander=0.01, shifts=(shift,), skips=lambda d, day: day % 7 != int(d[1:]))
    change = only(detect(sketch.points()))
    assert (change.cause, change.scope) == (Cause.DEVICE, {"device": "d2"})
    assert abs(change.day - FIRST_DAY - 210) <= 7


def test_a_program_that_moves_three_variants_of_one_network_has_not_moved_their_baseline() -> None:
    shift = Shift(day=DAY, delta=0.1, holds_for=lambda d, n, v: v != BASELINE)
    sketch = Sketch(
        networks=1,
        variants=(BASELINE, "int8", "fp16", "int4"),
        shifts=(shift,),
        versions={("program", "", "", ""): ((DAY, "p2"),)},
    )
    change = only(detect(sketch.points()))
    assert (change.cause, change.scope, len(change.evidence)) == (Cause.PROGRAM, {"program": "p2"}, 9)


@pytest.mark.parametrize(
    ("holds_for", "series", "scope"),
    [
        (lambda d, n, v: (d, n, v) == ("d0", "n0", "int8"), "d0/n0/int8", {}),
        (lambda d, n, v: (d, n, v) == ("d0", "n0", BASELINE), "d0/n0/base", {}),
        (lambda d, n, v: d == "d0" and v != BASELINE, None, {"device": "d0"}),
    ],
)
def test_a_step_without_a_version_is_found_in_the_ratios_of_what_moved(
    holds_for: Callable[[str, str, str], bool], series: str | None, scope: Mapping[str, str]
) -> None:
    change = only(detect(Sketch(shifts=(Shift(day=DAY, delta=0.08, holds_for=holds_for),)).points()))
    assert (change.series, change.scope, change.cause) == (series, scope, Cause.DEVICE)
    assert change.day == FIRST_DAY + DAY
    assert change.told <= change.day + 8


def test_a_slow_drift_is_told_once_and_as_a_drift() -> None:
    shift = Shift(day=30, delta=0.12, ramp=60, holds_for=lambda d, n, v: (d, n, v) == ("d0", "n0", "int8"))
    change = only(detect(Sketch(days=150, shifts=(shift,)).points()))
    assert (change.cause, change.series) == (Cause.DRIFT, "d0/n0/int8")
    assert abs(change.day - FIRST_DAY - 30) <= 25


@pytest.mark.parametrize("days", [(30, 31), (15, 16, 17)])
def test_a_few_broken_sessions_in_a_row_are_no_change(days: tuple[int, ...]) -> None:
    broken = {("d0/n0/int8", day): 0.4 for day in days}
    assert detect(Sketch(days=45, broken=broken).points()) == []


def test_a_revert_is_a_second_change() -> None:
    shifts = (
        file_shift(0.08),
        Shift(day=DAY + 6, delta=-0.08, holds_for=lambda d, n, v: (n, v) == ("n0", "int8")),
    )
    versions = {("file", "", "n0", "int8"): ((DAY, "new"), (DAY + 6, "file-1"))}
    first, second = detect(Sketch(shifts=shifts, versions=versions).points())
    assert first.delta > 0 > second.delta
    assert (first.day, second.day) == (FIRST_DAY + DAY, FIRST_DAY + DAY + 6)


def test_an_outage_over_the_break_delays_the_change() -> None:
    sketch = Sketch(
        days=80,
        shifts=(file_shift(0.08),),
        versions={("file", "", "n0", "int8"): ((DAY, "new"),)},
        skips=lambda device, day: DAY - 3 <= day < DAY + 20,
    )
    change = only(detect(sketch.points()))
    assert (change.cause, change.day) == (Cause.FILE, FIRST_DAY + DAY + 20)


def test_a_device_that_returns_at_another_level_within_its_wander_has_not_changed() -> None:
    shift = Shift(day=45, delta=0.04, holds_for=lambda d, n, v: d == "d1")
    sketch = Sketch(days=70, wander=0.02, shifts=(shift,), skips=lambda d, day: d == "d1" and 20 <= day < 45)
    assert detect(sketch.points()) == []


@pytest.mark.parametrize(("wander", "delta", "seed"), [(0.004, 0.05, 2), (0.008, 0.05, 1)])
def test_a_build_soon_after_a_device_was_away_is_told(wander: float, delta: float, seed: int) -> None:
    """The step itself is no part of how far the level wandered."""
    shift = Shift(day=40, delta=delta, holds_for=lambda d, n, v: d == "d1")
    sketch = Sketch(
        wander=wander,
        skips=lambda d, day: d == "d1" and 18 <= day < 38,
        versions={("os", "d1", "", ""): ((40, "o2"),)},
        seed=seed,
    )
    assert detect(sketch.points()) == []
    change = only(detect(replace(sketch, shifts=(shift,)).points()))
    assert (change.cause, change.scope, change.day) == (Cause.OS, {"os": "o2"}, FIRST_DAY + 40)


def test_of_versions_on_successive_days_the_one_whose_day_it_was_is_the_cause() -> None:
    shift = Shift(day=DAY + 1, delta=0.08, holds_for=lambda d, n, v: v != BASELINE)
    versions = {("program", "", "", ""): ((DAY, "p2"), (DAY + 1, "p3"))}
    change = only(detect(Sketch(shifts=(shift,), versions=versions).points()))
    assert (change.scope, change.day) == ({"program": "p3"}, FIRST_DAY + DAY + 1)


def test_a_device_that_was_away_while_a_program_changed_joins_the_change() -> None:
    shift = Shift(day=DAY, delta=0.08, holds_for=lambda d, n, v: v != BASELINE)
    sketch = Sketch(
        days=90,
        shifts=(shift,),
        versions={("program", "", "", ""): ((DAY, "p2"),)},
        skips=lambda d, day: d == "d1" and 25 <= day < 70,
    )
    assert only(detect(sketch.points())).scope == {"program": "p2"}


def test_a_device_that_skipped_a_program_joins_the_changes_of_both() -> None:
    first = Shift(day=DAY, delta=0.1, holds_for=lambda d, n, v: True)
    second = Shift(day=DAY + 8, delta=-0.1, holds_for=lambda d, n, v: v != BASELINE)
    sketch = Sketch(
        devices=6,
        days=90,
        shifts=(first, second),
        versions={("program", "", "", ""): ((DAY, "p2"), (DAY + 8, "p3"))},
        skips=lambda d, day: d == "d1" and DAY - 4 <= day < DAY + 11,
    )
    assert [change.scope for change in detect(sketch.points())] == [{"program": "p2"}, {"program": "p3"}]


def test_what_a_device_skipped_while_it_was_away_for_weeks_is_told_of_no_later_program() -> None:
    sketch = Sketch(
        devices=4,
        days=100,
        shifts=(Shift(day=DAY, delta=0.06, holds_for=lambda d, n, v: True),),
        versions={("program", "", "", ""): ((DAY, "p2"), (DAY + 8, "p3"), (DAY + 48, "p4"))},
        skips=lambda device, day: device == "d3" and DAY - 2 <= day < DAY + 36,
    )
    change = only(detect(sketch.points()))
    assert (change.cause, change.scope) == (Cause.PROGRAM, {"program": "p2"})


def test_order_and_duplicates_of_points_do_not_matter() -> None:
    points = Sketch(
        shifts=(file_shift(0.06),), versions={("file", "", "n0", "int8"): ((DAY, "new"),)}
    ).points()
    shuffled = [*points, *points[::3]]
    Random(3).shuffle(shuffled)
    assert detect(shuffled) == detect(points)


def test_values_that_do_not_exist_are_left_out() -> None:
    points = [
        point._replace(log_speedup=math.nan, se_speedup=math.nan, se_time=math.nan)
        if number % 5 == 0
        else point
        for number, point in enumerate(
            Sketch(
                shifts=(file_shift(0.08),), versions={("file", "", "n0", "int8"): ((DAY, "new"),)}
            ).points()
        )
    ]
    assert only(detect(points)).cause is Cause.FILE


def test_a_day_is_not_added_twice() -> None:
    detector = Detector()
    points = Sketch(days=1).points()
    detector.add_day(FIRST_DAY, points)
    with pytest.raises(ValueError, match="not later"):
        detector.add_day(FIRST_DAY, points)


def eventful(seed: int) -> list[Point]:
    random = Random(seed)
    shifts = tuple(
        Shift(day=random.randint(15, 70), delta=random.choice([-0.1, 0.05, 0.08]), holds_for=holds_for)
        for holds_for in (
            lambda d, n, v: (n, v) == ("n0", "int8"),
            lambda d, n, v: d == "d1",
            lambda d, n, v: (d, n) == ("d0", "n1") and v != BASELINE,
        )
    )
    versions = {("file", "", "n0", "int8"): ((shifts[0].day, "new"),), ("os", "d1", "", ""): ((40, "o2"),)}
    return Sketch(days=80, shifts=shifts, versions=versions, seed=seed).points()


@pytest.mark.long
@given(seed=st.integers(0, 10_000), days=st.integers(1, 80))
@settings(max_examples=12, deadline=None)
def test_what_is_told_up_to_a_day_follows_from_the_points_up_to_that_day(seed: int, days: int) -> None:
    points = eventful(seed)
    told = [change for change in detect(points) if change.told < FIRST_DAY + days]
    assert detect(p for p in points if p.day < FIRST_DAY + days) == told


@pytest.mark.long
def test_days_added_one_by_one_give_the_same_as_all_at_once() -> None:
    points = eventful(7)
    detector = Detector()
    found = [
        c for day, of_day in groupby(points, key=lambda p: p.day) for c in detector.add_day(day, list(of_day))
    ]
    assert found == detect(points)
