"""Backpressure: the reasons why this host should get no new work."""

import asyncio
from typing import NoReturn

import structlog

from agents.host.atomic_file import DiskThread
from agents.outbox.spool import Spool

log = structlog.get_logger(__name__)

#: Between checks of the disk.
DISK_S = 10.0


class Backpressure:
    """Reasons by subject, in memory, so that composing an exchange never blocks.

    A reason contains no changing numbers: another text is another incident of the host.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        """Start without a reason; `changed` is set when the farm should be called at once."""
        self._changed = changed
        self._reason_by_subject: dict[str, str] = {}

    def record(self, subject: str, reason: str | None) -> None:
        """Record what is wrong with a subject; None when it is well."""
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
        """Return all reasons as one text; None when all is well."""
        return "; ".join(self._reason_by_subject.values())[:500] or None


async def watch_disk(spool: Spool, disk: DiskThread, pressure: Backpressure) -> NoReturn:
    """Check periodically whether the disk has space for evidence."""
    while True:
        pressure.record("disk", await disk.call(spool.shortage))
        await asyncio.sleep(DISK_S)
