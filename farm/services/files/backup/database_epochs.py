"""What has to happen before a database goes on that forgot the end of its history."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.devices.host_state import SessionState
from farm.core.operations.event import EventSubject, FarmEvent
from farm.database import sequences
from farm.database.tables import leader_leases
from farm.store.devices import fencing_tokens
from farm.store.hosts import hosts
from farm.store.operations import database_epochs
from farm.store.operations.database_epochs import DatabaseEpoch
from farm.store.operations.events import record_event

#: So many numbers and fencing tokens are left out at least: some were given after the backup was taken.
_SKIPPED_NUMBERS = 1_000_000
#: And so many for each second since then: no two lives of one backup give the same.
_SKIPPED_NUMBERS_PER_S = 10


def begin_epoch(
    connection: Connection, *, cause: str, forgot_since: datetime, now: datetime, actor: str
) -> DatabaseEpoch:
    """Begin a new history of a database that was put back to what it was at some time.

    Every agent has to open a session anew, and says what it has; numbers and tokens that may have been given
    since are not given again, and every phone is cleaned up before it gets work: something may run there that
    this database never heard of.

    Args:
        connection: the database, which no farm is using.
        cause: why, for people.
        forgot_since: what happened after this moment is forgotten.
        now: the time.
        actor: who does it.
    """
    forgotten_s = max(0, int((now - forgot_since).total_seconds()))
    left_out = _SKIPPED_NUMBERS + _SKIPPED_NUMBERS_PER_S * forgotten_s
    sequences.skip_sequence_numbers(connection, left_out)
    begun = database_epochs.add_epoch(connection, cause=cause, now=now)
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=FarmEvent.DATABASE_EPOCH_BEGUN,
        subject=EventSubject.DATABASE,
        subject_id=begun.epoch,
        cause=cause,
    )
    # Not closed: what runs on the phones may go on, once their agents say that it does.
    for session in hosts.sessions_in_state(connection, SessionState.LIVE):
        hosts.move_session(connection, session, SessionState.SILENT, now=now, cause=cause)
    fencing_tokens.raise_all_fences(connection, left_out, now=now, actor=actor, cause=cause)
    connection.execute(sa.delete(leader_leases))
    return begun
