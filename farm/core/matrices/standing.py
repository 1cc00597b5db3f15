"""A standing matrix: what the farm keeps measuring, when, and which cells it skips for a while."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum

from farm.core.base.ids import Digest, digest_of
from farm.core.devices.selector import KnownDevice, Selector, fits
from farm.core.matrices.matrix import CellKey, MatrixSpec, has_all

#: Where a standing matrix does not say: people go first.
STANDING_PRIORITY = -10


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Cells that are not measured for a while, and why."""

    reason: str
    #: The last day, in UTC.
    until: date
    #: Values that the cells have; none: all cells of the devices.
    cells: CellKey = field(default_factory=dict)
    #: Any of them; none: all devices.
    devices: tuple[Selector, ...] = ()

    def covers(self, key: CellKey, device: KnownDevice, *, today: date) -> bool:
        """Tell whether a cell on a device is skipped on a day."""
        return (
            today <= self.until
            and (not self.cells or has_all(key, self.cells))
            and (not self.devices or any(fits(device, selector) for selector in self.devices))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingSpec:
    """A standing matrix as submitted."""

    matrix: MatrixSpec
    #: Five fields of cron, in UTC; None: cells are measured once for each version of what they are made of.
    schedule: str | None = None
    skip: tuple[Skip, ...] = ()


def skip_of(skips: Sequence[Skip], key: CellKey, device: KnownDevice, *, today: date) -> Skip | None:
    """Return the skip that covers a cell on a device; the first of several."""
    return next((skip for skip in skips if skip.covers(key, device, today=today)), None)


class Coverage(StrEnum):
    """What a standing matrix has of a cell, at its present versions."""

    #: A measurement that counts.
    MEASURED = "measured"
    #: Jobs that are queued or run.
    QUEUED = "queued"
    #: All of its jobs ended without a measurement that counts.
    FAILED = "failed"
    #: No jobs yet: they are queued at the next look.
    MISSING = "missing"
    SKIPPED = "skipped"
    #: It cannot run there.
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVersions:
    """The versions of what a cell is made of."""

    #: Of the variant's file; None where the harness runs no model.
    variant: Digest | None
    #: Of the harness's program.
    program: Digest
    #: The fingerprint of the device's system build; None where it is not known.
    build: str | None


def version_digest(*, series: Digest, replica: int, versions: CellVersions) -> Digest:
    """Identify a cell at the versions of what it is made of: another digest is another cell to measure.

    Args:
        series: of its measurements, which names the device.
        replica: 2 for the duplicate of an A/A pair.
        versions: at present.
    """
    identity: Mapping[str, str | int | None] = {"series": series, "replica": replica, **asdict(versions)}
    return digest_of(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode())


def missing_reason(now: CellVersions, before: CellVersions) -> str:
    """Return why a cell is missing that was queued before, as text: what is new of it.

    Args:
        now: its present versions.
        before: those with which it was last queued, and the build with which it then ran.
    """
    new = []
    if now.variant != before.variant:
        new.append(f"new file {_short(now.variant)}, was {_short(before.variant)}")
    if now.program != before.program:
        new.append(f"new program {_short(now.program)}, was {_short(before.program)}")
    if None not in (now.build, before.build) and now.build != before.build:
        new.append(f"new build {now.build}, was {before.build}")
    # Controls, or a build that is not known: it never ran, or the device does not report it.
    return "; ".join(new) or "a new build, or new settings of the matrix"


def _short(digest: Digest | None) -> str:
    return "none" if digest is None else digest[:8]
