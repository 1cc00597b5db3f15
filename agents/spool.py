"""Evidence waits on disk until the farm has acknowledged it."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from agents.durable import remove_durably, sweep_temporaries, sync_folder, write_durably
from farm.core.ids import AttemptId

KEEP_REFUSED = timedelta(days=7)
KEEP_REFUSED_BYTES = 256 * 1024 * 1024


class Spool:
    """The bodies of reports, by attempt. Blocking: for the disk thread.

    Invariant: the bytes of a report never change once they are here, because their digest identifies it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._refused = folder / "refused"
        self._refused.mkdir(parents=True, exist_ok=True)
        sweep_temporaries(folder)

    def put(self, attempt_id: AttemptId, body: bytes) -> None:
        """Keep a report; on return it is on the disk. A report that is already here stays as it is.

        Raises:
            HostDiskFull: it could not be written; nothing may be called done.
        """
        if not self._path(attempt_id).exists():
            write_durably(self._path(attempt_id), body)

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

    def acknowledge(self, attempt_id: AttemptId) -> None:
        """The farm has it: the report is no longer needed."""
        remove_durably(self._path(attempt_id))

    def refuse(self, attempt_id: AttemptId, now: datetime) -> None:
        """The farm will never take it: put it aside, for a person to look at."""
        source, target = self._path(attempt_id), self._refused / f"{attempt_id}.json"
        if source.exists():
            source.replace(target)
            os.utime(target, (now.timestamp(), now.timestamp()))
            sync_folder(self._refused)
            sync_folder(self._folder)
        self._prune(now)

    def _prune(self, now: datetime) -> None:
        oldest_kept = (now - KEEP_REFUSED).timestamp()
        room_bytes = KEEP_REFUSED_BYTES
        for path in sorted(self._refused.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True):
            state = path.stat()
            room_bytes -= state.st_size
            if state.st_mtime < oldest_kept or room_bytes < 0:
                path.unlink()

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"
