"""Reports that the farm has answered, kept for a while in case they are asked for again."""

import os
from bisect import insort
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from agents.host.atomic_file import sync_folder, translate_disk_errors
from farm.core.base.ids import AttemptId


@dataclass(frozen=True, slots=True, order=True)
class _ArchivedReport:
    """A file of a shelf, by age."""

    since_s: float
    attempt_id: AttemptId
    size_bytes: int = field(compare=False)


class SentArchive:
    """A folder of reports within a size and an age: the oldest go first. Blocking: for the disk thread.

    Invariant: what is kept is known without looking at the folder, which may hold thousands of files.
    """

    def __init__(self, folder: Path, *, keep: timedelta, limit_bytes: int) -> None:
        """Open a folder, which is made when missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._keep = keep
        self._limit_bytes = limit_bytes
        self._archived = sorted(
            _archived_report(path) for path in folder.glob("*.json") if path.stem.isdigit()
        )
        self._size_bytes = sum(each.size_bytes for each in self._archived)

    def ids(self) -> list[AttemptId]:
        """Whose reports are kept, the oldest first."""
        return [each.attempt_id for each in self._archived]

    def put(self, source: Path, attempt_id: AttemptId, now: datetime) -> None:
        """Move a report here; one that is not there is fine.

        A power cut may undo that: then the report is sent once more, and answered as before.

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
        """Move a report away from here, for good; False when it is not here.

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
        """Remove one report, to make room; False when there is none."""
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
        for each in [each for each in self._archived if each.attempt_id == attempt_id]:
            self._archived.remove(each)
            self._size_bytes -= each.size_bytes

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"


def _archived_report(path: Path) -> _ArchivedReport:
    state = path.stat()
    return _ArchivedReport(state.st_mtime, AttemptId(int(path.stem)), state.st_size)
