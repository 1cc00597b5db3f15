"""Replay of acknowledged reports to a farm whose database was restored."""

from pathlib import Path

import structlog

from agents.attempts.attempts import AttemptController
from agents.host.atomic_file import DiskThread, write_file_durably
from agents.host.data_dir import find_file
from farm.core.errors import HostDiskFull
from farm.wire.agents.protocol import SessionAnswer

log = structlog.get_logger(__name__)

#: In the data folder: the epoch of the farm's database that this agent reported to last.
FILE = "database-epoch"
#: The farm assigns no new work before it has these reports; a limit keeps it from blocking all work.
_REPLAY_TIMEOUT_S = 20.0


class ReportReplay:
    """Compares the epoch of the farm's database with the last one this agent reported to.

    Invariant: a new epoch is recorded only after every kept report is queued again.
    """

    def __init__(self, attempts: AttemptController, data_dir: Path, disk: DiskThread) -> None:
        self._attempts = attempts
        self._path = data_dir / FILE
        self._disk = disk

    async def apply_session(self, session: SessionAnswer) -> None:
        """Send the reports the farm requests and wait for them; resend all that are kept after a new epoch.

        The farm refuses reports of attempts it does not know; these are kept as refused, and the jobs run
        again.
        """
        if session.reports_wanted:
            await self._attempts.resend_requested(session.reports_wanted, within_s=_REPLAY_TIMEOUT_S)
        previous = await self._disk.call(find_file, self._path)
        epoch = session.database_epoch.encode()
        if not epoch or previous == epoch:
            return
        if previous is not None:
            count = await self._attempts.resend()
            log.warning("database_restored", reports=count, epoch=session.database_epoch)
        try:
            await self._disk.call(write_file_durably, self._path, epoch)
        except HostDiskFull as error:
            # The next session sends them again, which changes nothing.
            log.warning("database_epoch_not_saved", reason=error.message)
