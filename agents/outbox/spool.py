"""The spool of reports: on disk until the farm has acknowledged them, then archived for another request."""

from bisect import insort
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from agents.host.atomic_file import (
    make_folder,
    quarantine,
    sealed,
    sweep_temporaries,
    sync_path,
    translate_disk_errors,
    unsealed,
    write_file_durably,
)
from agents.host.data_dir import RESERVE_BYTES, DiskReserve
from farm.core.base.ids import AttemptId
from farm.core.errors import HostDiskFailed, HostDiskFull

log = structlog.get_logger(__name__)

T = TypeVar("T")

KEEP_REFUSED_BYTES = 256 * 1024 * 1024
#: At some 20 KB for an ordinary report, the results of 25,000 runs.
KEEP_ACKNOWLEDGED_BYTES = 512 * 1024 * 1024


class Spool:
    """The bodies of reports, by attempt. Blocking: for the disk thread.

    Invariant: the bytes of a report never change, because their digest identifies it; each file carries it.
    A report is in one of three places: it waits, or it is in the archive of acknowledged reports, or in that
    of refused reports.
    """

    def __init__(self, folder: Path, *, reserve_bytes: int = RESERVE_BYTES) -> None:
        """Open a folder, created if missing; `reserve_bytes` of its disk are reserved for evidence."""
        self._folder = folder
        self._refused = SentArchive(folder / "refused", limit_bytes=KEEP_REFUSED_BYTES)
        self._acknowledged = SentArchive(folder / "acknowledged", limit_bytes=KEEP_ACKNOWLEDGED_BYTES)
        sweep_temporaries(folder)
        self._reserve = DiskReserve(folder / "reserve", reserve_bytes)
        #: True if the last write failed although bytes are free: out of inodes, or a quota.
        self._is_full = False

    def put(self, attempt_id: AttemptId, body: bytes) -> None:
        """Store a report; on return it is on the disk. An existing report is never replaced.

        On a full disk, answered reports are removed first, then the reserve is released.

        Raises:
            HostDiskFull: it still could not be written; nothing may be called done.
        """
        path = self._path(attempt_id)
        if path.is_dir():
            quarantine(path)
        while not path.exists():
            try:
                self._write_with_reserve(partial(write_file_durably, path, sealed(body)), len(body))
            except HostDiskFull as error:
                if isinstance(error, HostDiskFailed) or not (
                    self._acknowledged.remove_oldest()
                    or self._refused.remove_oldest()
                    or self._reserve.release()
                ):
                    raise

    def find(self, attempt_id: AttemptId) -> bytes | None:
        """Return the bytes of a waiting report; None when none waits, or it is damaged and set aside."""
        path = self._path(attempt_id)
        try:
            body = unsealed(path.read_bytes())
            reason = "its bytes have changed"
        except FileNotFoundError:
            return None
        except OSError as error:
            body, reason = None, str(error)
        if body is None:
            log.error("report_unreadable", attempt_id=attempt_id, path=str(path), reason=reason)
            quarantine(path)
        return body

    def pending(self) -> list[AttemptId]:
        """Return the attempts whose reports wait, oldest first."""
        names = [path.stem for path in self._folder.glob("*.json")]
        return sorted(AttemptId(int(name)) for name in names if name.isdigit())

    def acknowledge(self, attempt_id: AttemptId) -> None:
        """Archive an acknowledged report, for a farm whose database is restored from a backup.

        Raises:
            HostDiskFull: even a name takes more room than there is; it waits still.
        """
        self._move_report(partial(self._acknowledged.put, self._path(attempt_id), attempt_id))

    def acknowledged(self) -> list[AttemptId]:
        """Return the attempts whose acknowledged reports are still archived, the oldest first."""
        return self._acknowledged.ids()

    def resend(self, attempt_id: AttemptId) -> bool:
        """Queue an acknowledged report again; return False when it is no longer archived.

        Raises:
            HostDiskFull: even a name takes more room than there is; it is kept still.
        """
        return self._move_report(partial(self._acknowledged.restore, attempt_id, self._path(attempt_id)))

    def refuse(self, attempt_id: AttemptId) -> None:
        """Archive a refused report for an operator to inspect; raises like `acknowledge`."""
        self._move_report(partial(self._refused.put, self._path(attempt_id), attempt_id))

    def shortage(self) -> str | None:
        """Return why no new work should begin here; None while there is space beside the reserve."""
        # Inodes, or a quota, may be used up while bytes are free.
        return self._reserve.shortage() or (
            f"the agent's disk accepts no more files in {self._folder}" if self._is_full else None
        )

    def _move_report(self, move: Callable[[], T]) -> T:
        """Rename a report, which may need a little space; release the reserve if it fails."""
        try:
            return self._write_with_reserve(move)
        except HostDiskFull as error:
            if isinstance(error, HostDiskFailed) or not self._reserve.release():
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

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"


@dataclass(frozen=True, slots=True, order=True)
class _ArchivedReport:
    """An archived file, ordered by age: attempts are numbered in their order."""

    attempt_id: AttemptId
    size_bytes: int = field(compare=False)


class SentArchive:
    """A folder of reports, limited by size; the oldest are removed first. Blocking: for the disk thread.

    There is no limit of age: a clock that is set must not remove evidence.

    Invariant: the index is in memory, because the folder may hold thousands of files.
    """

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        """Open a folder, created if missing."""
        make_folder(folder)
        self._folder = folder
        self._limit_bytes = limit_bytes
        found = map(_find_archived_report, folder.glob("*.json"))
        self._archived = sorted(report for report in found if report is not None)
        self._size_bytes = sum(report.size_bytes for report in self._archived)

    def ids(self) -> list[AttemptId]:
        """Return the attempts whose reports are archived, the oldest first."""
        return [report.attempt_id for report in self._archived]

    def put(self, source: Path, attempt_id: AttemptId) -> None:
        """Move a report into the archive; a missing one is ignored.

        A power cut may undo the move: then the report is sent again, and answered as before.

        Raises:
            HostDiskFull: the folder has no room for its name; it stays where it was.
        """
        target = self._path(attempt_id)
        if source.exists():
            if target.exists():
                self._forget(attempt_id)
            with translate_disk_errors(target):
                source.replace(target)
            added = _archived_report(target)
            insort(self._archived, added)
            self._size_bytes += added.size_bytes
        while self._archived and self._size_bytes > self._limit_bytes:
            self.remove_oldest()

    def restore(self, attempt_id: AttemptId, target: Path) -> bool:
        """Move a report out of the archive; return False when it is not archived.

        Raises:
            HostDiskFull: there is no room for its name elsewhere; it stays here.
        """
        source = self._path(attempt_id)
        if not source.exists():
            return False
        with translate_disk_errors(target):
            source.replace(target)
        self._forget(attempt_id)
        sync_path(target.parent)
        sync_path(self._folder)
        return True

    def remove_oldest(self) -> bool:
        """Remove the oldest report, to free space; return False when there is none."""
        if not self._archived:
            return False
        oldest = self._archived.pop(0)
        self._size_bytes -= oldest.size_bytes
        with suppress(OSError):
            self._path(oldest.attempt_id).unlink()
        return True

    def _forget(self, attempt_id: AttemptId) -> None:
        for report in [report for report in self._archived if report.attempt_id == attempt_id]:
            self._archived.remove(report)
            self._size_bytes -= report.size_bytes

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"


def _find_archived_report(path: Path) -> _ArchivedReport | None:
    """Return the archived report of a file; None for what is none, or cannot be read."""
    try:
        return _archived_report(path) if path.stem.isdigit() and path.is_file() else None
    except OSError as error:
        log.warning("archived_report_unreadable", path=str(path), reason=str(error))
        return None


def _archived_report(path: Path) -> _ArchivedReport:
    return _ArchivedReport(AttemptId(int(path.stem)), path.stat().st_size)
