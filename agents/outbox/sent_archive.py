"""The archive of reports that the farm has answered, in case they are requested again."""

import os
from bisect import insort
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from agents.host.atomic_file import sync_folder, translate_disk_errors
from farm.core.base.ids import AttemptId


@dataclass(frozen=True, slots=True, order=True)
class _ArchivedReport:
    """An archived file, ordered by age."""

    since_s: float
    attempt_id: AttemptId
    size_bytes: int = field(compare=False)


class SentArchive:
    """A folder of reports, limited by size and age; the oldest are removed first. Blocking: for the disk
    thread.

    Invariant: the index is in memory, because the folder may hold thousands of files.
    """

    def __init__(self, folder: Path, *, keep: timedelta, limit_bytes: int) -> None:
        """Open a folder, created if missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._keep = keep
        self._limit_bytes = limit_bytes
        self._archived = sorted(
            _archived_report(path) for path in folder.glob("*.json") if path.stem.isdigit()
        )
        self._size_bytes = sum(report.size_bytes for report in self._archived)

    def ids(self) -> list[AttemptId]:
        """Return the attempts whose reports are archived, the oldest first."""
        return [report.attempt_id for report in self._archived]

    def put(self, source: Path, attempt_id: AttemptId, now: datetime) -> None:
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
                os.utime(source, (now.timestamp(), now.timestamp()))
                source.replace(target)
            added = _archived_report(target)
            insort(self._archived, added)
            self._size_bytes += added.size_bytes
        self._trim(now)

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
        sync_folder(target.parent)
        sync_folder(self._folder)
        return True

    def remove_oldest(self) -> bool:
        """Remove the oldest report, to free space; return False when there is none."""
        if not self._archived:
            return False
        oldest = self._archived.pop(0)
        self._size_bytes -= oldest.size_bytes
        self._path(oldest.attempt_id).unlink(missing_ok=True)
        return True

    def _trim(self, now: datetime) -> None:
        oldest_kept_s = (now - self._keep).timestamp()
        while self._archived and (
            self._size_bytes > self._limit_bytes or self._archived[0].since_s < oldest_kept_s
        ):
            self.remove_oldest()

    def _forget(self, attempt_id: AttemptId) -> None:
        for report in [report for report in self._archived if report.attempt_id == attempt_id]:
            self._archived.remove(report)
            self._size_bytes -= report.size_bytes

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"


def _archived_report(path: Path) -> _ArchivedReport:
    state = path.stat()
    return _ArchivedReport(state.st_mtime, AttemptId(int(path.stem)), state.st_size)
