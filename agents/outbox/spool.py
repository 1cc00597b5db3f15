"""Evidence waits on disk until the farm has acknowledged it, and is kept for a while after that."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from agents.host.atomic_file import sweep_temporaries, write_file_durably
from agents.host.disk_reserve import RESERVE_BYTES, DiskReserve
from agents.outbox.sent_archive import SentArchive
from farm.core.base.ids import AttemptId
from farm.core.errors import HostDiskFull

T = TypeVar("T")

KEEP = timedelta(days=7)
KEEP_REFUSED_BYTES = 256 * 1024 * 1024
#: At some 20 KB for an ordinary report, the results of 25,000 runs.
KEEP_ACKNOWLEDGED_BYTES = 512 * 1024 * 1024


class Spool:
    """The bodies of reports, by attempt. Blocking: for the disk thread.

    Invariant: the bytes of a report never change once they are here, because their digest identifies it. A
    report is in one of three places: it waits, or it is on the shelf of those that were acknowledged, or on
    that of those that were refused.
    """

    def __init__(self, folder: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        """Open a folder, which is made when missing; `reserve_bytes` of its disk are kept for evidence."""
        self._folder = folder
        self._refused = SentArchive(folder / "refused", keep=KEEP, limit_bytes=KEEP_REFUSED_BYTES)
        self._acknowledged = SentArchive(
            folder / "acknowledged", keep=KEEP, limit_bytes=KEEP_ACKNOWLEDGED_BYTES
        )
        sweep_temporaries(folder)
        self._reserve = DiskReserve(folder / "reserve", reserve_bytes)
        #: Whether what was tried last found no room, though there are bytes.
        self._is_full = False

    def put(self, attempt_id: AttemptId, body: bytes) -> None:
        """Keep a report; on return it is on the disk. A report that is already here stays as it is.

        On a full disk, answered reports go before it, and then the reserve.

        Raises:
            HostDiskFull: it could not be written all the same; nothing may be called done.
        """
        while not self._path(attempt_id).exists():
            try:
                self._write_with_reserve(partial(write_file_durably, self._path(attempt_id), body), len(body))
            except HostDiskFull:
                if not (
                    self._acknowledged.remove_oldest() or self._refused.remove_oldest() or self._release()
                ):
                    raise

    def find(self, attempt_id: AttemptId) -> bytes | None:
        """A waiting report's bytes."""
        try:
            return self._path(attempt_id).read_bytes()
        except FileNotFoundError:
            return None

    def pending(self) -> list[AttemptId]:
        """Attempts whose reports wait, oldest first."""
        names = [path.stem for path in self._folder.glob("*.json")]
        return sorted(AttemptId(int(name)) for name in names if name.isdigit())

    def acknowledge(self, attempt_id: AttemptId, now: datetime) -> None:
        """The farm has it: keep it aside, for a farm whose database is restored from a backup.

        Raises:
            HostDiskFull: even a name takes more room than there is; it waits still.
        """
        self._move_report(partial(self._acknowledged.put, self._path(attempt_id), attempt_id, now))

    def acknowledged(self) -> list[AttemptId]:
        """Attempts whose reports the farm had, and that are still kept; the oldest first."""
        return self._acknowledged.ids()

    def resend(self, attempt_id: AttemptId) -> bool:
        """Have a report that was acknowledged wait once more; False when it is not kept any more.

        Raises:
            HostDiskFull: even a name takes more room than there is; it is kept still.
        """
        return self._move_report(partial(self._acknowledged.restore, attempt_id, self._path(attempt_id)))

    def refuse(self, attempt_id: AttemptId, now: datetime) -> None:
        """The farm will never take it: put it aside, for a person to look at; raises like `acknowledge`."""
        self._move_report(partial(self._refused.put, self._path(attempt_id), attempt_id, now))

    def shortage(self) -> str | None:
        """Why nothing new should begin here, in words; None while there is room beside the reserve."""
        # Names, or a quota, may be all used up where bytes are free.
        return self._reserve.shortage() or (
            "the agent's disk takes no further file" if self._is_full else None
        )

    def _move_report(self, move: Callable[[], T]) -> T:
        """Carry out a rename, which may need a little room; no report is worth less than that."""
        try:
            return self._write_with_reserve(move)
        except HostDiskFull:
            if not self._release():
                raise
            return self._write_with_reserve(move)

    def _write_with_reserve(self, write: Callable[[], T], size_bytes: int = 0) -> T:
        try:
            done = write()
        except HostDiskFull:
            # Where bytes are short, the reserve says so, and for how long.
            self._is_full = self._reserve.has_room(size_bytes)
            raise
        self._is_full = False
        return done

    def _release(self) -> bool:
        return self._reserve.release()

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"
