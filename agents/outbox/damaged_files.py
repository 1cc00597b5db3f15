"""Files of the agent that were damaged and set aside, as the farm is told of them."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import structlog

from agents.host.atomic_file import QUARANTINED_SUFFIX, DiskThread

log = structlog.get_logger(__name__)

#: Between looks at the folders.
_EVERY_S = 10.0
#: A disk that fails may have damaged thousands.
_MAX_NAMED = 10
#: Folders below the agent's own, and what was in the files of each; the names of files are attempts' numbers.
_LOST_BY_FOLDER = {
    "attempts": "the journal record of attempt {stem}",
    "spool": "the report of attempt {stem}",
    ".": "the agent's state",
}


class DamagedFiles:
    """A text about the damaged files, in memory, so that composing an exchange never blocks.

    The files that were set aside are themselves the record: no crash forgets them, and the farm is told of
    them until an operator has removed them.
    """

    def __init__(self, data_dir: Path, changed: asyncio.Event) -> None:
        """Start without any; `changed` is set when the farm should be called at once."""
        self._data_dir = data_dir
        self._changed = changed
        #: None while there are none.
        self.notice: str | None = None

    async def watch(self, disk: DiskThread) -> NoReturn:
        """Look for damaged files for ever."""
        while True:
            # What a disk that cannot be read has set aside stays as it was.
            with suppress(OSError):
                self._record(await disk.call(damage_notice, self._data_dir))
            await asyncio.sleep(_EVERY_S)

    def _record(self, notice: str | None) -> None:
        if notice != self.notice:
            self.notice = notice
            log.warning("damaged_files_changed", notice=notice)
            self._changed.set()


def damage_notice(data_dir: Path) -> str | None:
    """Return which files were set aside and what is lost; None without any. Blocking."""
    damaged = list(_damaged_files(data_dir))
    if not damaged:
        return None
    named = ", ".join(damaged[:_MAX_NAMED])
    more = f" and {len(damaged) - _MAX_NAMED} more" if len(damaged) > _MAX_NAMED else ""
    return (
        f"the agent set damaged files aside in {data_dir}: {named}{more}. A run without its record or report"
        " is lost, and tried again; check the host's disk, then delete these files"
    )


def _damaged_files(data_dir: Path) -> Iterable[str]:
    for folder, lost in _LOST_BY_FOLDER.items():
        paths = sorted((data_dir / folder).glob(f"*{QUARANTINED_SUFFIX}"))
        yield from (f"{path.relative_to(data_dir)} ({lost.format(stem=path.stem)})" for path in paths)
