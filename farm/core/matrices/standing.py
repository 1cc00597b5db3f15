"""A standing matrix: what the farm keeps measuring, when, and which cells it skips for a while."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def version_digest(
    *, series: Digest, replica: int, variant: Digest | None, program: Digest, build: str | None
) -> Digest:
    """Identify a cell at the versions of what it is made of: another digest is another cell to measure.

    Args:
        series: of its measurements, which names the device.
        replica: 2 for the duplicate of an A/A pair.
        variant: of the variant's file; None where the harness runs no model.
        program: of the harness's program.
        build: the fingerprint of the device's system build; None where it is not known.
    """
    versions: Mapping[str, str | int | None] = {
        "series": series,
        "replica": replica,
        "variant": variant,
        "program": program,
        "build": build,
    }
    return digest_of(json.dumps(versions, sort_keys=True, separators=(",", ":")).encode())
