"""What was tried with phones that are not there for work, on disk: where an agent's next life goes on."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import TypeAdapter, ValidationError

from agents.host.atomic_file import DiskThread, disk_errors_named, write_durably
from agents.host.data_dir import find_file
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.errors import HostDiskFull
from farm.core.upkeep.recovery import Climb, RecoveryStep, RecoveryTry

log = structlog.get_logger(__name__)

#: In the data folder.
FILE = "climbs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClimb:
    """One phone as the ladder knows it. Times are seconds on the agent's own clock."""

    device_id: DeviceId
    #: What adb called it.
    serial: str
    usb_path: str | None
    climb: Climb | None
    tries: tuple[RecoveryTry, ...]
    #: Was begun, and its end not told.
    begun: RecoveryStep | None
    begun_at_s: float | None
    restarted_at_s: float | None
    #: How often somebody was called in a row, and when last.
    failures: int
    failed_at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The file. The clock of times begins anew with each boot of the host; the wall clock goes on."""

    host_boot_id: str
    at: datetime
    at_s: float
    climbs: tuple[KeptClimb, ...]


_KEPT = TypeAdapter(_Kept)


class ClimbMemory:
    """One file, replaced as a whole whenever there is something new to know.

    Invariant: what is to be kept of a restart is on disk before the phone is told to.
    """

    def __init__(self, data_dir: Path, disk: DiskThread, clock: Clock, *, host_boot_id: str) -> None:
        self._path = data_dir / FILE
        self._disk = disk
        self._clock = clock
        self._host_boot_id = host_boot_id
        self._on_disk: tuple[KeptClimb, ...] = ()

    async def recall(self) -> tuple[KeptClimb, ...]:
        """What an earlier life wrote down, on the clock of this one; nothing where that cannot be read."""
        raw = await self._disk.call(find_file, self._path)
        if raw is None:
            return ()
        try:
            kept = _KEPT.validate_json(raw)
        except ValidationError:
            log.exception("climbs_unreadable", path=str(self._path))
            with suppress(HostDiskFull):
                await self._disk.call(_put_aside, self._path)
            return ()
        self._on_disk = kept.climbs
        behind_s = 0.0 if self._is_of_this_boot(kept) else self._behind_s(kept)
        return tuple(_later(each, behind_s) for each in kept.climbs)

    async def keep(self, climbs: Sequence[KeptClimb]) -> None:
        """Have these on disk on return; writes only where they are others.

        Raises:
            HostDiskFull: what was there before stays.
        """
        wanted = tuple(climbs)
        if wanted == self._on_disk:
            return
        kept = _Kept(
            host_boot_id=self._host_boot_id,
            at=self._clock.now(),
            at_s=self._clock.monotonic(),
            climbs=wanted,
        )
        await self._disk.call(write_durably, self._path, _KEPT.dump_json(kept))
        self._on_disk = wanted

    def _is_of_this_boot(self, kept: _Kept) -> bool:
        # Where a system does not tell one boot from the next, its clock does not run backwards at least.
        return kept.host_boot_id == self._host_boot_id and kept.at_s <= self._clock.monotonic()

    def _behind_s(self, kept: _Kept) -> float:
        """What to add to times of another boot of this host; a clock that was put back passed no time."""
        passed_s = max(0.0, (self._clock.now() - kept.at).total_seconds())
        return self._clock.monotonic() - passed_s - kept.at_s


def _later(kept: KeptClimb, by_s: float) -> KeptClimb:
    climb = kept.climb and replace(
        kept.climb, since_s=kept.climb.since_s + by_s, taken_at_s=_moved(kept.climb.taken_at_s, by_s)
    )
    return replace(
        kept,
        climb=climb,
        begun_at_s=_moved(kept.begun_at_s, by_s),
        restarted_at_s=_moved(kept.restarted_at_s, by_s),
        failed_at_s=_moved(kept.failed_at_s, by_s),
    )


def _moved(at_s: float | None, by_s: float) -> float | None:
    return None if at_s is None else at_s + by_s


def _put_aside(path: Path) -> None:
    with disk_errors_named(path):
        path.replace(path.with_suffix(".unreadable"))
