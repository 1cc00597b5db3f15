"""Changes of simulated farms: of which cause, where, since when and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import log
from typing import TypeVar

from numpy.random import Generator

from benchmarks.independent_farm import ACCELERATORS, BASE, Cell, QuietFarm, Version

SIZES = (0.03, 0.05, 0.1, 0.2)
_SIZE_SHARES = (0.25, 0.3, 0.27, 0.18)
_SLOWER = 0.75
#: Share of farms in which nothing changes.
_QUIET = 0.2
#: Between changes that touch the same series: two that are closer are one to whoever reads the series.
_APART_DAYS = 21
_SESSIONS_BEFORE, _SESSIONS_AFTER = 10, 8
#: Series that a change reaches differ in how much it is to them: by less than would be a change of its own.
_SPREAD = 0.03
_TRIES = 60
#: Quiet versions give way to one that changes something: else it would be a matter of luck which is blamed.
_REPLACES_DAYS = 15
_Key = TypeVar("_Key")


class ChangeKind(StrEnum):
    """What changes where."""

    FILE = "file of a network and variant"
    PROGRAM = "program, all series"
    PROGRAM_VARIANT = "program, one variant"
    OS = "os, all times of a model"
    OS_VARIANT = "os, one variant of a model"
    DEVICE = "device, all its series"
    DEVICE_VARIANT = "device, one variant"
    DRIFT_SERIES = "drift of one series"
    DRIFT_DEVICE = "drift of a device"
    DRIFT_VARIANT = "drift of a variant"

    @property
    def cause(self) -> str:
        """Return the cause as `farm history detect` names it."""
        return self.value.partition(" ")[0].rstrip(",")


#: As often as a farm would see them.
KIND_SHARES: Mapping[ChangeKind, float] = {
    ChangeKind.FILE: 0.28,
    ChangeKind.PROGRAM: 0.11,
    ChangeKind.PROGRAM_VARIANT: 0.1,
    ChangeKind.OS: 0.08,
    ChangeKind.OS_VARIANT: 0.1,
    ChangeKind.DEVICE: 0.09,
    ChangeKind.DEVICE_VARIANT: 0.09,
    ChangeKind.DRIFT_SERIES: 0.06,
    ChangeKind.DRIFT_DEVICE: 0.05,
    ChangeKind.DRIFT_VARIANT: 0.04,
}


@dataclass(frozen=True, slots=True)
class Course:
    """How a series takes a change: by `delta`, since `begin`, in so many days."""

    begin: int
    ramp: int
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueChange:
    """A change that was put into a farm."""

    kind: ChangeKind
    #: Of the logarithm of time.
    delta: float
    course_by_series: Mapping[tuple[str, Cell], Course]
    #: The version that came with it, by its column.
    version: Mapping[str, str] = field(default_factory=dict)

    @property
    def begin(self) -> int:
        """Return the first day of any series."""
        return min(course.begin for course in self.course_by_series.values())

    @property
    def end(self) -> int:
        """Return the day by which all series have come to their new level."""
        return max(course.begin + course.ramp for course in self.course_by_series.values())

    @property
    def size(self) -> float:
        """Return the one of `SIZES` that it has."""
        return min(SIZES, key=lambda size: abs(log(1 + size) - abs(self.delta)))


def changes_of(rng: Generator, farm: QuietFarm, only: ChangeKind | None = None) -> list[TrueChange]:
    """Draw changes, and add the versions they come with to the farm.

    Args:
        rng: numbers are drawn from.
        farm: they happen in.
        only: this kind, once, by the largest size; else some of all kinds, or none.
    """
    if only is not None:
        wanted = [(only, log(1 + SIZES[-1]))]
    else:
        count = 0 if rng.random() < _QUIET else 1 + rng.poisson(3.5 * farm.days / 200)
        kinds = rng.choice(list(KIND_SHARES), size=count, p=list(KIND_SHARES.values()))
        wanted = [(ChangeKind(kind), _delta(rng)) for kind in kinds]
    changes: list[TrueChange] = []
    for kind, delta in wanted:
        for _ in range(_TRIES):
            change = _drawn(rng, farm, kind, delta)
            if change is not None and all(_are_apart(change, other) for other in changes):
                changes.append(_with_version(farm, change))
                break
    return sorted(changes, key=lambda change: change.begin)


def _delta(rng: Generator) -> float:
    return log(1 + rng.choice(SIZES, p=_SIZE_SHARES)) * (1 if rng.random() < _SLOWER else -1)


def _drawn(rng: Generator, farm: QuietFarm, kind: ChangeKind, delta: float) -> TrueChange | None:
    """Return a change at a place and day that are drawn, or None where too little of it is measured."""
    series = _series(rng, farm, kind)
    ramp = int(rng.integers(14, 57)) if kind.cause == "drift" else 0
    day = int(rng.integers(20, farm.days - ramp - 10)) if farm.days - ramp - 10 > 20 else 0
    phones = {phone for phone, _ in series}
    # A build reaches the phones of a model one after the other.
    delay = {phone: int(rng.integers(0, 15)) if kind.cause == "os" else 0 for phone in sorted(phones)}
    is_shown = [_is_shown(farm, phone, day + delay[phone], ramp) for phone in phones]
    if sum(is_shown) <= len(phones) / 2:
        return None
    return TrueChange(
        kind=kind,
        delta=delta,
        course_by_series={
            (phone, cell): Course(day + delay[phone], ramp, delta * (1 + rng.normal(0.0, _SPREAD)))
            for phone, cell in series
        },
    )


def _series(rng: Generator, farm: QuietFarm, kind: ChangeKind) -> list[tuple[str, Cell]]:
    """Return which series a change of a kind reaches, somewhere."""
    every = list(farm.noise_by_series)
    phone, cell = every[int(rng.integers(len(every)))]
    while cell.variant == BASE and not (kind is ChangeKind.FILE and rng.random() < 0.4):
        phone, cell = every[int(rng.integers(len(every)))]
    if kind is ChangeKind.OS_VARIANT:
        accelerated = [one for one in every if one[1].variant in ACCELERATORS]
        phone, cell = accelerated[int(rng.integers(len(accelerated)))] if accelerated else (phone, cell)
    model = farm.phone_by_name[phone].model
    of_model = [one for one in every if farm.phone_by_name[one[0]].model == model]
    match kind:
        case ChangeKind.FILE | ChangeKind.DRIFT_VARIANT:
            return [one for one in every if one[1] == cell]
        case ChangeKind.PROGRAM:
            return [one for one in every if one[1].harness == cell.harness]
        case ChangeKind.PROGRAM_VARIANT:
            return [one for one in every if one[1][1:] == cell[1:]]
        case ChangeKind.OS:
            return of_model
        case ChangeKind.OS_VARIANT:
            return [one for one in of_model if one[1].variant == cell.variant]
        case ChangeKind.DEVICE | ChangeKind.DRIFT_DEVICE:
            return [one for one in every if one[0] == phone]
        case ChangeKind.DEVICE_VARIANT:
            return [one for one in every if one[0] == phone and one[1].variant == cell.variant]
        case ChangeKind.DRIFT_SERIES:
            return [(phone, cell)]


def _is_shown(farm: QuietFarm, phone: str, day: int, ramp: int) -> bool:
    days = farm.phone_by_name[phone].days
    return bool(sum(days < day) >= _SESSIONS_BEFORE and sum(days >= day + ramp) >= _SESSIONS_AFTER)


def _are_apart(change: TrueChange, other: TrueChange) -> bool:
    if change.begin > other.end + _APART_DAYS or other.begin > change.end + _APART_DAYS:
        return True
    return _touched(change).isdisjoint(_touched(other))


def _touched(change: TrueChange) -> set[tuple[str, str, str]]:
    """Return which phones' networks and harnesses have a series that changes: its ratios are to one base."""
    return {(phone, cell.network, cell.harness) for phone, cell in change.course_by_series}


def _with_version(farm: QuietFarm, change: TrueChange) -> TrueChange:
    """Return the change with the version that it came with, which the farm gets."""
    (phone, cell), begin = next(iter(change.course_by_series)), change.begin
    versions = farm.versions
    match change.kind.cause:
        case "file":
            name = f"{'-'.join(cell)}-{begin}"
            _add(versions.file_by_cell, {cell: Version(begin, name)})
        case "program":
            name = f"{cell.harness}-{begin}"
            _add(versions.program_by_harness, {cell.harness: Version(begin, name)})
        case "os":
            name = f"{farm.phone_by_name[phone].model}-{begin}"
            since = {each: course.begin for (each, _), course in change.course_by_series.items()}
            _add(versions.build_by_phone, {each: Version(day, name) for each, day in since.items()})
        case _:
            return change
    return replace(change, version={change.kind.cause: name})


def _add(versions_of: dict[_Key, list[Version]], added: Mapping[_Key, Version]) -> None:
    """Add a version, which takes the place of quiet ones that come at about the same time."""
    replaced = {
        version.name
        for key, new in added.items()
        for version in versions_of[key]
        if version.since > 0 and abs(version.since - new.since) < _REPLACES_DAYS
    }
    for key, new in added.items():
        versions_of[key] = sorted([new, *(old for old in versions_of[key] if old.name not in replaced)])
