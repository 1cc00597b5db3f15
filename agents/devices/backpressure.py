"""Why this host should get no new work just now: what the farm is told, and who finds it out."""

import asyncio
from typing import NoReturn

import structlog

from agents.host.atomic_file import DiskThread
from agents.outbox.spool import Spool

log = structlog.get_logger(__name__)

#: Between looks at the disk.
DISK_S = 10.0


class Backpressure:
    """Reasons by what they are about, in memory: whoever composes an exchange waits for nothing.

    A reason has no figures that change: another text is another incident of the host.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        """`changed` is set when the farm should hear of something at once."""
        self._changed = changed
        self._reason_by_subject: dict[str, str] = {}

    def record(self, subject: str, reason: str | None) -> None:
        """Say what is wrong with the disk, say; None when all is well."""
        if reason == self._reason_by_subject.get(subject):
            return
        if reason is None:
            del self._reason_by_subject[subject]
            log.info("host_pressure_over", subject=subject)
        else:
            self._reason_by_subject[subject] = reason
            log.warning("host_pressure", subject=subject, reason=reason)
        self._changed.set()

    @property
    def reason(self) -> str | None:
        """All of it, in words; None when all is well."""
        return "; ".join(self._reason_by_subject.values())[:500] or None


async def watch_disk(spool: Spool, disk: DiskThread, pressure: Backpressure) -> NoReturn:
    """Look now and then whether there is room for evidence."""
    while True:
        pressure.record("disk", await disk.call(spool.shortage))
        await asyncio.sleep(DISK_S)
