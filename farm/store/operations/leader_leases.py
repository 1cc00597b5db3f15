"""Duties: what one farm process does for all of them."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.jobs.leader_lease import Holding, Turn, turn
from farm.core.operations.event import FarmEvent, Subject
from farm.database.tables import duties
from farm.store.operations.events import record_event


def find_holding(connection: Connection, duty: str) -> Holding | None:
    """Who holds a duty, and until when."""
    row = connection.execute(sa.select(duties).where(duties.c.duty == duty)).one_or_none()
    return None if row is None else Holding(holder=row.holder, held_until=row.held_until)


def take_duty(connection: Connection, duty: str, process: str, *, now: datetime, lease: timedelta) -> Turn:
    """Take a duty, or keep it, for the length of a lease from now; no row moves where another has it."""
    found = find_holding(connection, duty)
    whose = turn(found, process, now=now, lease=lease)
    if whose is Turn.ELSEWHERE and connection.dialect.name != "sqlite":
        return whose
    if whose is Turn.ELSEWHERE:
        # One process at a time has the file: this holder is an earlier life, which was killed.
        whose = Turn.TAKEN
    values = {"holder": process, "held_until": now + lease}
    if found is None:
        connection.execute(duties.insert().values(duty=duty, **values))
    else:
        connection.execute(duties.update().where(duties.c.duty == duty).values(values))
    if whose is Turn.TAKEN:
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=FarmEvent.DUTY_TAKEN,
            subject=Subject.DUTY,
            subject_id=duty,
            from_state=None if found is None else found.holder,
            to_state=process,
        )
    return whose


def release_duty(connection: Connection, duty: str, process: str, *, now: datetime) -> None:
    """Let others have a duty at once; nothing happens when another has it already."""
    connection.execute(
        duties.update().where(duties.c.duty == duty, duties.c.holder == process).values(held_until=now)
    )
