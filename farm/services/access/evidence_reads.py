"""Who read which evidence: noted in memory, and recorded in the event log by one write a minute."""

import threading
from datetime import datetime, timedelta

from farm.clock import Clock
from farm.core.operations.event import AccessEvent
from farm.core.operations.role import Caller
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.store.operations.events import record_event

#: A reading of the same by the same caller is recorded once in so long: open pages read again and again.
RECORD_EVERY = timedelta(hours=1)
#: Readings that are remembered, so that they are not recorded again; beyond it, the oldest are forgotten.
MAX_REMEMBERED = 65_536

#: An actor, what was read, and its id.
_Reading = tuple[str, AccessEvent, int]


class EvidenceReads:
    """The readings of evidence that were not recorded yet. No reader waits for the write."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._noted_at: dict[_Reading, datetime] = {}
        self._waiting: list[_Reading] = []

    def note(self, caller: Caller, kind: AccessEvent, subject_id: int) -> None:
        """Note that a caller read the evidence of an attempt, or the samples of a matrix.

        Callers without a token are everyone on the farm's own machine: they are not recorded.
        """
        if not caller.is_authenticated:
            return
        reading, now = (caller.actor, kind, subject_id), self._clock.now()
        with self._lock:
            before = self._noted_at.pop(reading, None)
            is_new = before is None or now - before >= RECORD_EVERY
            # The newest is last.
            self._noted_at[reading] = now if before is None or is_new else before
            if is_new:
                self._waiting.append(reading)
            while len(self._noted_at) > MAX_REMEMBERED:
                del self._noted_at[next(iter(self._noted_at))]

    def __call__(self) -> None:
        """Record what was noted; it is kept where the database cannot be written."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            self._database.write(bind_tx(_record_readings, now=self._clock.now()), waiting)
        except Exception:
            with self._lock:
                self._waiting = [*waiting, *self._waiting]
            raise


def _record_readings(tx: Tx, readings: list[_Reading]) -> None:
    for actor, kind, subject_id in readings:
        record_event(tx.by(actor), kind, subject_id)
