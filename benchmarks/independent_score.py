"""How well told changes agree with true ones: a scorer that knows the documents of `--json` alone.

A told change is right if a true one, not yet matched, has

- its direction;
- its series: the scope holds most of the series that the change reached while they were measured, and most of
  what it holds has the change. Scopes have no key for a harness, so series of others do not count. A scope
  that is just the program or build that came with the change names it, too, where only one variant of what it
  runs changed;
- its day: a step's within a week of the days its series show it first (noise may move it, sessions may be
  missing, and a build comes to phones over days); a drift's from two weeks before its begin to two weeks
  after its end, as a slope has no day;
- not been told before a session could show it, or before its own day.

The cause is not asked for; it is counted apart. Of two that fit, the one that is told first is right, the
other repeated. All others are wrong, in one way each.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import cast

from benchmarks.independent_changes import TrueChange
from benchmarks.independent_farm import series_name
from benchmarks.independent_points import Row, SimulatedHistory, day_number

STEP_DAYS, DRIFT_DAYS = 7, 14
_MONTH_DAYS = 30.44


class Judgement(StrEnum):
    """What a told change is worth; those further up say more about how it is wrong."""

    RIGHT = "right"
    REPEATED = "repeated"
    DIRECTION = "wrong direction"
    DAY = "wrong day"
    PEEKS = "told before it was seen"
    PART = "a lesser part of its series"
    SCOPE = "wrong series"
    NOTHING = "nothing changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A change as `farm history detect --json` prints it, with days of the history."""

    series: str | None
    scope: Mapping[str, str]
    day: int
    delta: float
    cause: str
    told: int

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> "Told":
        """Read what `--json` prints."""
        return cls(
            series=cast(str | None, document["series"]),
            scope=cast(Mapping[str, str], document["scope"] or {}),
            day=day_number(str(document["day"])),
            delta=float(str(document["delta"])),
            cause=str(document["cause"]),
            told=day_number(str(document["told"])),
        )

    def __str__(self) -> str:
        where = self.series or ", ".join(f"{key} {value}" for key, value in self.scope.items())
        return f"day {self.day} told {self.told}: {self.delta:+.3f} {self.cause}: {where}"


@dataclass(frozen=True, kw_only=True)
class ShownChange:
    """A true change, and on which days which series show it."""

    change: TrueChange
    #: Of all series that it reached with sessions before and after.
    days_by_series: Mapping[str, Sequence[int]]
    #: All that ever had it, such as series of phones that came later.
    carriers: frozenset[str]
    #: On which one does.
    first: int

    @cached_property
    def series(self) -> frozenset[str]:
        """Return the series that show it."""
        return frozenset(self.days_by_series)

    def sessions_until(self, day: int) -> int:
        """Return on how many days any of its series was measured with it, up to a day and with it."""
        return len({each for days in self.days_by_series.values() for each in days if each <= day})

    def __str__(self) -> str:
        change = self.change
        days = f"day {self.first}..{max(self.first, change.end)}"
        where = f"{min(self.series)} ({len(self.series)} series)"
        return f"{days}: {change.delta:+.3f} {change.kind.value}: {where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryScore:
    """What was told of one history, what it is worth, and what was missed."""

    seed: int
    is_quiet: bool
    series_months: float
    #: With the true change that it is, or was nearest to.
    told: Sequence[tuple[Told, Judgement, ShownChange | None]]
    missed: Sequence[ShownChange]

    @property
    def right(self) -> Sequence[tuple[Told, ShownChange]]:
        """Return what is right, with what it is."""
        return [
            (told, true) for told, worth, true in self.told if worth is Judgement.RIGHT and true is not None
        ]


def score(history: SimulatedHistory, documents: Sequence[Mapping[str, object]]) -> HistoryScore:
    """Compare what was told of a history with what happened in it."""
    measured = _days_by_series(history.rows)
    shown = [each for change in history.changes if (each := _shown(change, measured)).series]
    told = sorted((Told.from_document(each) for each in documents), key=lambda each: (each.told, each.day))
    judged = judge(told, shown, _series_by_value(history.rows))
    found = {id(true) for _, worth, true in judged if worth is Judgement.RIGHT}
    return HistoryScore(
        seed=history.seed,
        is_quiet=not history.changes,
        series_months=sum(days[-1] - days[0] + 1 for days in measured.values()) / _MONTH_DAYS,
        told=judged,
        missed=[true for true in shown if id(true) not in found],
    )


def judge(
    told: Sequence[Told], shown: Sequence[ShownChange], series_by_value: Mapping[tuple[str, str], set[str]]
) -> list[tuple[Told, Judgement, ShownChange | None]]:
    """Say of each told change, in the order of telling, what it is worth and which true one it is about."""
    matched: set[int] = set()
    judged: list[tuple[Told, Judgement, ShownChange | None]] = []
    for each in told:
        held = _held(each, series_by_value)
        worths = [(_worth(each, held, true, id(true) in matched), true) for true in shown]
        order = list(Judgement)
        worth, nearest = min(
            worths,
            key=lambda pair: (order.index(pair[0]), abs(each.day - pair[1].first)),
            default=(Judgement.NOTHING, None),
        )
        if worth is Judgement.RIGHT:
            matched.add(id(nearest))
        judged.append((each, worth, None if worth is Judgement.NOTHING else nearest))
    return judged


def _worth(told: Told, held: set[str], true: ShownChange, is_matched: bool) -> Judgement:
    """Return what a told change is worth as that true one."""
    flaws = []
    if told.delta * true.change.delta <= 0:
        flaws.append(Judgement.DIRECTION)
    low, high = _days(true)
    if not low <= told.day <= high:
        flaws.append(Judgement.DAY)
    if told.told < max(told.day, true.first):
        flaws.append(Judgement.PEEKS)
    if not _is_about(told, held, true):
        flaws.append(Judgement.SCOPE)
    if not flaws:
        return Judgement.REPEATED if is_matched else Judgement.RIGHT
    if len(flaws) > 1 or not held & true.carriers:
        return Judgement.NOTHING
    return Judgement.PART if flaws == [Judgement.SCOPE] and held <= true.carriers else flaws[0]


def _days(true: ShownChange) -> tuple[int, int]:
    """Return the first and the last day that are right."""
    change = true.change
    tolerance = DRIFT_DAYS if change.kind.cause == "drift" else STEP_DAYS
    return min(true.first, change.begin) - tolerance, max(true.first, change.end) + tolerance


def _is_about(told: Told, held: set[str], true: ShownChange) -> bool:
    if len(held & true.series) <= len(true.series) / 2:
        return False
    names_version = bool(true.change.version) and dict(told.scope) == dict(true.change.version)
    harnesses = {cell.harness for _, cell in true.change.course_by_series}
    of_harness = {name for name in held if name.rpartition("/")[2] in harnesses}
    return names_version or len(held & true.carriers) > len(of_harness) / 2


def _held(told: Told, series_by_value: Mapping[tuple[str, str], set[str]]) -> set[str]:
    """Return the series that a told change is about."""
    if told.series is not None:
        return {told.series}
    if not told.scope:
        return set()
    return set.intersection(*(set(series_by_value.get(item, ())) for item in told.scope.items()))


def _days_by_series(rows: Sequence[Row]) -> dict[str, list[int]]:
    days: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        days[row["series"]].append(day_number(row["day"]))
    return days


def _series_by_value(rows: Sequence[Row]) -> dict[tuple[str, str], set[str]]:
    series: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        for column in ("device", "device_model", "network", "variant", "harness", "file", "program", "os"):
            series[column, row[column]].add(row["series"])
    return series


def _shown(change: TrueChange, measured: Mapping[str, Sequence[int]]) -> ShownChange:
    days_by_series: dict[str, Sequence[int]] = {}
    carriers = set()
    for (phone, cell), course in change.course_by_series.items():
        name = series_name(phone, cell)
        days = measured.get(name, ())
        since = bisect_left(days, course.begin)
        if since < len(days):
            carriers.add(name)
            if since > 0:
                days_by_series[name] = days[since:]
    return ShownChange(
        change=change,
        days_by_series=days_by_series,
        carriers=frozenset(carriers),
        first=min((days[0] for days in days_by_series.values()), default=change.begin),
    )
