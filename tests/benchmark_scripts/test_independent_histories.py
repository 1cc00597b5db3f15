"""The second simulator's changes are found, and its scorer calls right what is right alone."""

import re
from collections.abc import Mapping, Sequence

import pytest

from benchmarks.independent_changes import ChangeKind, Course, TrueChange
from benchmarks.independent_farm import Cell, series_name
from benchmarks.independent_histories import looks_ahead, report, told_by_command, told_of
from benchmarks.independent_points import SimulatedHistory, day_text, history
from benchmarks.independent_score import Judgement, ShownChange, Told, judge, score

CELL = Cell("net0", "gpu", "litert")
PHONES = ("phone0", "phone1", "phone2")
SERIES = {series_name(phone, CELL) for phone in PHONES}
OTHERS = {series_name(phone, CELL._replace(variant="int8")) for phone in PHONES}
SCOPES = {
    ("network", "net0"): SERIES | OTHERS,
    ("variant", "gpu"): SERIES,
    ("device", "phone0"): {series_name("phone0", CELL)},
    ("program", "litert-50"): SERIES | OTHERS,
}
RIGHT = Told(
    series=None, scope={"network": "net0", "variant": "gpu"}, day=50, delta=0.1, cause="file", told=52
)


def shown(kind: ChangeKind = ChangeKind.FILE, *, ramp: int = 0, **version: str) -> ShownChange:
    """Return a change of 10 % on day 50, which all three phones show."""
    courses = {(phone, CELL): Course(50, ramp, 0.1) for phone in PHONES}
    return ShownChange(
        change=TrueChange(kind=kind, delta=0.1, course_by_series=courses, version=version),
        days_by_series={name: [50, 51, 53] for name in SERIES},
        carriers=frozenset(SERIES),
        first=50,
    )


def told(**other: object) -> Told:
    """Return what is right, with some fields otherwise."""
    fields = {name: getattr(RIGHT, name) for name in Told.__dataclass_fields__}
    return Told(**{**fields, **other})


def worths(each: Sequence[Told], true: ShownChange) -> list[Judgement]:
    return [worth for _, worth, _ in judge(each, [true], SCOPES)]


def test_what_is_exactly_right_is_right() -> None:
    assert worths([RIGHT], shown()) == [Judgement.RIGHT]


@pytest.mark.parametrize(
    ("other", "worth"),
    [
        ({"day": 58, "told": 60}, Judgement.DAY),
        ({"day": 42}, Judgement.DAY),
        ({"delta": -0.1}, Judgement.DIRECTION),
        ({"told": 49, "day": 49}, Judgement.PEEKS),
        ({"told": 51}, Judgement.RIGHT),
        ({"day": 52, "told": 51}, Judgement.PEEKS),
        ({"scope": {"device": "phone0"}}, Judgement.PART),
        ({"scope": {"network": "net0"}}, Judgement.SCOPE),
        ({"scope": {"network": "net7"}}, Judgement.NOTHING),
        ({"scope": {}}, Judgement.NOTHING),
        ({"scope": {}, "series": min(OTHERS)}, Judgement.NOTHING),
        ({"delta": -0.1, "day": 70, "told": 71}, Judgement.NOTHING),
    ],
)
def test_what_differs_is_wrong_in_its_way(other: Mapping[str, object], worth: Judgement) -> None:
    assert worths([told(**other)], shown()) == [worth]


def test_the_second_of_two_that_tell_the_same_is_wrong() -> None:
    assert worths([RIGHT, told(told=60)], shown()) == [Judgement.RIGHT, Judgement.REPEATED]


def test_a_version_names_its_change_where_one_variant_of_it_changed() -> None:
    of_program = told(scope={"program": "litert-50"}, cause="program")
    assert worths([of_program], shown(ChangeKind.PROGRAM_VARIANT, program="litert-50")) == [Judgement.RIGHT]
    assert worths([of_program], shown()) == [Judgement.SCOPE]


def test_scopes_that_cannot_name_a_harness_are_not_blamed_for_others() -> None:
    onnx = {series_name(phone, CELL._replace(harness="onnxruntime")) for phone in PHONES}
    scopes = {("network", "net0"): SERIES | onnx, ("variant", "gpu"): SERIES | onnx}
    assert [worth for _, worth, _ in judge([RIGHT], [shown()], scopes)] == [Judgement.RIGHT]


def test_a_drift_is_told_within_its_ramp_and_two_weeks() -> None:
    drift = shown(ChangeKind.DRIFT_VARIANT, ramp=30)
    days = (35, 36, 94, 95)
    assert [worths([told(day=day, told=96)], drift)[0] for day in days] == [
        Judgement.DAY,
        Judgement.RIGHT,
        Judgement.RIGHT,
        Judgement.DAY,
    ]


def test_sessions_are_counted_by_the_days_that_show_a_change() -> None:
    assert shown().sessions_until(52) == 2


def exact_answer(simulated: SimulatedHistory) -> list[dict[str, object]]:
    """Return what knows all changes, told on the last day."""
    return [
        {
            "series": series_name(*next(iter(change.course_by_series))) if reached == 1 else None,
            "scope": dict(change.version) or {"network": cell.network, "variant": cell.variant},
            "day": day_text(change.begin),
            "delta": change.delta,
            "cause": change.kind.cause,
            "told": simulated.rows[-1]["day"],
        }
        for change in simulated.changes
        for (_, cell), reached in [(next(iter(change.course_by_series)), len(change.course_by_series))]
    ]


def test_an_exact_answer_to_a_history_scores_everything_and_none_scores_nothing() -> None:
    simulated = history(34, only=ChangeKind.FILE)
    exact = score(simulated, exact_answer(simulated))
    assert [worth for _, worth, _ in exact.told] == [Judgement.RIGHT]
    assert not exact.missed
    lines = "\n".join(report([exact]))
    assert re.search(r"^precision +100.0% .* 1 of 1$", lines, re.MULTILINE)
    assert re.search(r"^recall, 10 % and more +100.0% .* 1 of 1$", lines, re.MULTILINE)
    none = score(simulated, [])
    assert len(none.missed) == 1
    assert re.search(r"^recall, 10 % and more +0.0% .* 0 of 1$", "\n".join(report([none])), re.MULTILINE)


def test_a_large_change_of_a_program_is_found_and_never_by_looking_ahead() -> None:
    simulated = history(34, only=ChangeKind.PROGRAM_VARIANT)
    documents = told_of(simulated.csv())
    [(found, true)] = score(simulated, documents).right
    assert found.cause == true.change.kind.cause == "program"
    assert not list(looks_ahead(simulated, documents))
    assert told_by_command(simulated.csv()) == documents


def test_a_seed_gives_one_history() -> None:
    assert history(5).csv() == history(5).csv() != history(6).csv()
