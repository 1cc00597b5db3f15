"""Changes that the farm records: their evidence and state, and which of them a new detection finds again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from farm.core.base.ids import CellId, SeriesId

#: The same change is found with a first day that differs by so much at most; a drift has no sharp one.
_SAME_WITHIN = timedelta(days=7)
_SAME_DRIFT_WITHIN = timedelta(days=45)


class ChangeCause(StrEnum):
    """What a change is attributed to: what detection distinguishes, and what the farm knows beside it."""

    #: The model file of a variant.
    FILE = "file"
    #: The program of a harness.
    PROGRAM = "program"
    #: The build of the operating system.
    OS = "os"
    #: A device: several of its series moved together, without a version that changed.
    DEVICE = "device"
    #: A slow change without a first day of a new level.
    DRIFT = "drift"
    #: How it was measured: nothing but the control level is another one.
    METHOD = "method"
    #: Nothing common explains it: no version changed with it, and its siblings stayed.
    UNKNOWN = "unknown"
    #: There was none: the old version beside the new one takes the same time, or it soon went back.
    NOISE = "noise"


class ChangeState(StrEnum):
    """What people say of a change."""

    #: Not judged yet.
    NEW = "new"
    #: A person looks at it.
    ACKNOWLEDGED = "acknowledged"
    #: It is meant to be so.
    EXPECTED = "expected"
    #: Its cause is removed.
    FIXED = "fixed"
    #: There was no change.
    INVALID = "invalid"
    #: It is of the farm (cables, room, hosts), and not of what is measured.
    INFRASTRUCTURE = "infrastructure"


class ChangedPart(StrEnum):
    """What has another version since a change."""

    #: The model file.
    FILE = "file"
    #: The program of the harness.
    PROGRAM = "program"
    #: The build of the device's system, its kernel or drivers.
    OS = "os"
    #: The extent of control over the device.
    CONTROLS = "controls"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedVersion:
    """A version before a change, and since: digests of files and programs, names of builds."""

    part: ChangedPart
    old: str | None
    new: str | None


#: A series, and what it is compared with.
SeriesPair = tuple[SeriesId, SeriesId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSeries:
    """A series that shows a change."""

    series_id: SeriesId
    baseline_series_id: SeriesId | None
    #: The first cell of its new level.
    cell_id: CellId
    #: The change of the logarithm of time, by its own sessions.
    delta: float | None

    @property
    def pair(self) -> SeriesPair:
        """Return the series with its baseline."""
        return self.series_id, self.baseline_series_id


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChange:
    """A change with its evidence, as a detection found it."""

    cause: ChangeCause
    #: Of what nothing explains: it soon went back, or is how an earlier one did.
    is_passing: bool = False
    #: What the changed series have in common, by name.
    scope: Mapping[str, str]
    #: The change of the logarithm of time, + is slower, and its standard error.
    delta: float
    se_delta: float
    #: The last session of the old level, and the first of the new one.
    before_at: datetime
    since_at: datetime
    told_at: datetime
    #: Devices that show it, of those that measured the same on both sides.
    devices: int
    of_devices: int
    versions: Sequence[ChangedVersion]
    series: Sequence[ChangedSeries]

    @property
    def is_slower(self) -> bool:
        """Return whether it takes more time since."""
        return self.delta > 0

    @property
    def is_noise(self) -> bool:
        """Return whether there was no change."""
        return self.is_passing and self.cause is ChangeCause.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change as it is recorded."""

    #: Part of a document: unknown keys are refused, as in every document of `farm.wire`.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    change_id: int
    #: `noise` and, where a version that was blamed is refuted, `unknown` are what became of `found_cause`.
    cause: ChangeCause
    #: What the points alone attribute it to.
    found_cause: ChangeCause
    #: Of what nothing explains: it soon went back, or is how an earlier one did.
    is_passing: bool
    state: ChangeState
    #: What the changed series have in common: model, variant, harness, device, program, os.
    scope: Mapping[str, str]
    #: The change of the logarithm of time: + is slower; and its standard error between sessions.
    delta: float
    se_delta: float
    #: The last session of the old level, and the first of the new one: it happened between them.
    before_at: datetime
    since_at: datetime
    #: The time up to which what was measured was enough to tell, and at which the farm recorded it.
    told_at: datetime
    recorded_at: datetime
    #: Since when the points show it no more: measurements were retracted or parsed again; None: they do.
    gone_at: datetime | None
    #: Devices that show it, of those that measured the same before and since.
    devices: int
    of_devices: int
    #: What has another version since, that of the cause first.
    versions: tuple[ChangedVersion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownChange:
    """A change that is recorded, as far as it is compared with those that are found."""

    change_id: int
    #: As it was found.
    cause: ChangeCause
    is_passing: bool
    delta: float
    since_at: datetime
    told_at: datetime
    is_gone: bool
    pairs: frozenset[SeriesPair]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtChange:
    """A change that is found, as far as it is compared with those that are recorded."""

    #: Those that its versions, which are read last, may give it.
    causes: frozenset[ChangeCause]
    delta: float
    day: datetime
    pairs: frozenset[SeriesPair]


def same_changes(sought: Sequence[SoughtChange], known: Sequence[KnownChange]) -> dict[int, KnownChange]:
    """Return the recorded change of each found one, by its place; those that are new are left out.

    The same change has the same direction, a near day and some of the same series. Of several, that with the
    same cause and the most series in common is it; another cause is a better explanation of the same event if
    half of the series are the same.
    """
    pairs = []
    for place, found in enumerate(sought):
        for change in known:
            common = len(found.pairs & change.pairs)
            is_same_cause = change.cause in found.causes
            is_drift = ChangeCause.DRIFT in {*found.causes, change.cause}
            within = _SAME_DRIFT_WITHIN if is_drift else _SAME_WITHIN
            if (
                common
                and found.delta * change.delta > 0
                and abs(found.day - change.since_at) <= within
                and (is_same_cause or 2 * common >= min(len(found.pairs), len(change.pairs)))
            ):
                apart = abs(found.day - change.since_at)
                pairs.append(((not is_same_cause, -common, apart, change.change_id), place, change))
    same: dict[int, KnownChange] = {}
    taken: set[int] = set()
    for _, place, change in sorted(pairs, key=lambda pair: (pair[0], pair[1])):
        if place not in same and change.change_id not in taken:
            same[place] = change
            taken.add(change.change_id)
    return same


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedChanges:
    """What a detection is to record."""

    added: Sequence[FoundChange]
    #: By number: changes whose evidence is another than recorded.
    updated: Sequence[tuple[int, FoundChange]]
    #: Changes that the points show no more.
    gone: Sequence[int]
