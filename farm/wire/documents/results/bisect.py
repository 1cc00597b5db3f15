"""Documents about a search for the version that changed a time."""

from datetime import datetime
from typing import Literal

from farm.core.base.ids import DeviceId, Digest, MatrixId
from farm.core.results.history.bisect import VersionResult
from farm.wire.base import Wire

#: `found`: one version; `range`: one of several; `same`: the ends do not differ by more than the margin;
#: `undecided`: whether they do was not decided; `not_measured`: there are no usable measurements of both.
BisectOutcome = Literal["found", "range", "same", "undecided", "not_measured"]


class BisectSpeedup(Wire):
    """A version against the good end on one device."""

    device_id: DeviceId
    device_label: str | None
    #: Time of the good end over time of the version, and its interval.
    speedup: float | None
    ci_low: float | None
    ci_high: float | None
    rounds: int
    #: Which end the version is like there; None of the bad end itself.
    result: VersionResult | None


class BisectVersion(Wire):
    """A version of the search."""

    #: From 1, the good end, in order.
    place: int
    #: The name of its model file, and SHA-256 of that.
    name: str
    digest: Digest
    created_at: datetime


class BisectComparison(Wire):
    """A comparison of the search: one version beside both ends."""

    version: BisectVersion
    #: None where its file is gone, so that it was not measured.
    matrix_id: MatrixId | None
    result: VersionResult
    #: Why it has no measurement, or is undecided.
    reason: str | None
    devices: tuple[BisectSpeedup, ...]


class BisectView(Wire):
    """`farm bisect --json`: what was searched, compared and found."""

    #: The name of the search, which its matrices have: `bisect 3f2a91c4`.
    name: str
    outcome: BisectOutcome
    versions: int
    good: BisectVersion
    bad: BisectVersion
    #: The change is after this version, ...
    last_good: BisectVersion
    #: ... and is there in this one: the first bad version, where the outcome is `found`.
    first_bad: BisectVersion
    #: The device whose comparisons decided; None where the ends do not differ.
    device_id: DeviceId | None
    device_label: str | None
    #: The first bad version, or one with the same change, against the good end on that device.
    change: BisectSpeedup | None
    #: The devices on which the ends differ, and those on which both were measured.
    differing_devices: tuple[DeviceId, ...]
    measured_devices: tuple[DeviceId, ...]
    comparisons: tuple[BisectComparison, ...]
