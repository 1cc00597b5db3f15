"""Reports that the farm took, and that its database may have forgotten, are sent once more."""

from pathlib import Path

import structlog

from agents.attempts.attempts import AttemptController
from agents.host.atomic_file import DiskThread, write_file_durably
from agents.host.data_dir import find_file
from farm.core.errors import HostDiskFull
from farm.wire.agents.protocol import SessionAnswer

log = structlog.get_logger(__name__)

#: In the data folder: which history of the farm's database this agent reported to last.
FILE = "database-epoch"
#: The farm gives no new work before it heard of these; but no work at all would be worse.
_REPLAY_TIMEOUT_S = 20.0


class ReportReplay:
    """Compares what the farm says of its database with what the agent knew.

    Invariant: another epoch is noted only after everything that was kept waits to be sent again.
    """

    def __init__(self, attempts: AttemptController, data_dir: Path, disk: DiskThread) -> None:
        self._attempts = attempts
        self._path = data_dir / FILE
        self._disk = disk

    async def apply_session(self, session: SessionAnswer) -> None:
        """Send what the farm asks for, and wait for that; send all that is kept when its history is another.

        Those it does not know are refused and kept aside: what they report was forgotten, and is run again.
        """
        if session.reports_wanted:
            await self._attempts.resend_requested(session.reports_wanted, within_s=_REPLAY_TIMEOUT_S)
        known = await self._disk.call(find_file, self._path)
        epoch = session.database_epoch.encode()
        if not epoch or known == epoch:
            return
        if known is not None:
            count = await self._attempts.resend()
            log.warning("database_restored", reports=count, epoch=session.database_epoch)
        try:
            await self._disk.call(write_file_durably, self._path, epoch)
        except HostDiskFull as error:
            # The next session will have them sent once more, which changes nothing.
            log.warning("database_epoch_not_kept", reason=error.message)
