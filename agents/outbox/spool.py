"""The spool of reports: on disk until the farm has acknowledged them, then archived."""

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

    Invariant: the bytes of a report never change, because their digest identifies it. A report is in one of
    three places: it waits, or it is in the archive of acknowledged reports, or in that of refused reports.
    """

    def __init__(self, folder: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        """Open a folder, created if missing; `reserve_bytes` of its disk are reserved for evidence."""
        self._folder = folder
        self._refused = SentArchive(folder / "refused", keep=KEEP, limit_bytes=KEEP_REFUSED_BYTES)
        self._acknowledged = SentArchive(
            folder / "acknowledged", keep=KEEP, limit_bytes=KEEP_ACKNOWLEDGED_BYTES
        )
        sweep_temporaries(folder)
        self._reserve = DiskReserve(folder / "reserve", reserve_bytes)
        #: Whether the last write failed although bytes are free: out of inodes, or a quota.
        self._is_full = False

    def put(self, attempt_id: AttemptId, body: bytes) -> None:
        """Store a report; on return it is on the disk. An existing report is never replaced.

        On a full disk, answered reports are removed first, then the reserve is released.

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
        """Return the bytes of a waiting report; None when none waits."""
        try:
            return self._path(attempt_id).read_bytes()
        except FileNotFoundError:
            return None

    def pending(self) -> list[AttemptId]:
        """Return the attempts whose reports wait, oldest first."""
        names = [path.stem for path in self._folder.glob("*.json")]
        return sorted(AttemptId(int(name)) for name in names if name.isdigit())

    def acknowledge(self, attempt_id: AttemptId, now: datetime) -> None:
        """Archive an acknowledged report, for a farm whose database is restored from a backup.

        Raises:
            HostDiskFull: even a name takes more room than there is; it waits still.
        """
        self._move_report(partial(self._acknowledged.put, self._path(attempt_id), attempt_id, now))

    def acknowledged(self) -> list[AttemptId]:
        """Return the attempts whose acknowledged reports are still archived, the oldest first."""
        return self._acknowledged.ids()

    def resend(self, attempt_id: AttemptId) -> bool:
        """Queue an acknowledged report again; return False when it is no longer archived.

        Raises:
            HostDiskFull: even a name takes more room than there is; it is kept still.
        """
        return self._move_report(partial(self._acknowledged.restore, attempt_id, self._path(attempt_id)))

    def refuse(self, attempt_id: AttemptId, now: datetime) -> None:
        """Archive a refused report for an operator to inspect; raises like `acknowledge`."""
        self._move_report(partial(self._refused.put, self._path(attempt_id), attempt_id, now))

    def shortage(self) -> str | None:
        """Return why no new work should begin here; None while there is space beside the reserve."""
        # Inodes, or a quota, may be used up while bytes are free.
        return self._reserve.shortage() or (
            "the agent's disk accepts no more files" if self._is_full else None
        )

    def _move_report(self, move: Callable[[], T]) -> T:
        """Rename a report, which may need a little space; release the reserve if it fails."""
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
            # A lack of bytes is reported by the reserve.
            self._is_full = self._reserve.has_room(size_bytes)
            raise
        self._is_full = False
        return done

    def _release(self) -> bool:
        return self._reserve.release()

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"
