"""Somebody who plugs a sick phone out and in again: that gets it checked at once, not a minute later."""

import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tests.chaos.testbed.testbed import Arena

#: As long as agents take to notice, and checks to run.
_EVERY_S = 15.0
_OUT_S = 0.5
_SICK = sa.text(
    "SELECT device_id FROM devices WHERE health <> 'good' AND NOT EXISTS ("
    "SELECT 1 FROM jobs WHERE jobs.device_id = devices.device_id"
    " AND jobs.kind = 'check' AND jobs.state <> 'finished')"
)


class Caretaker:
    """Looks after the phones of an arena when all faults are over."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._seen_to_s: dict[int, float] = {}

    def see_to_phones(self) -> None:
        """Replug those that are not good and that no check waits for."""
        sick = self._arena.farms[0].database.read(_sick)
        for number, phone in enumerate(self._arena.phones):
            now_s = time.monotonic()
            if phone.serial in sick and now_s - self._seen_to_s.get(number, 0.0) > _EVERY_S:
                self._seen_to_s[number] = now_s
                self._arena.pull_out(number)
                time.sleep(_OUT_S)
                self._arena.plug_in(number)


def _sick(connection: Connection) -> set[str]:
    return set(connection.execute(_SICK).scalars())
