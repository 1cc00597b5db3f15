"""Confirmations of changes: the matrix of each, and what it shows."""

from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.results.history.confirmation import Confirmation, ConfirmationOutcome
from farm.core.results.history.recorded_change import ChangeCause, ChangeState, RecordedChange
from farm.database.rows import find_record, to_record
from farm.database.tables import changes, confirmations
from farm.database.transaction import Tx
from farm.store.results.history.changes import recorded_changes

#: Those whose old version the farm may still have.
_CONFIRMED_CAUSES = (ChangeCause.FILE, ChangeCause.PROGRAM)
#: What a person has judged otherwise is not measured for.
_OPEN_STATES = (ChangeState.NEW, ChangeState.ACKNOWLEDGED)


def unconfirmed_changes(connection: Connection, *, since: datetime, limit: int) -> list[RecordedChange]:
    """Return changes of files and programs that were told since a time, and have no confirmation yet."""
    query = (
        recorded_changes()
        .outerjoin(confirmations, confirmations.c.change_id == changes.c.change_id)
        .where(
            changes.c.told_at >= since,
            changes.c.cause.in_(_CONFIRMED_CAUSES),
            changes.c.gone_at.is_(None),
            changes.c.state.in_(_OPEN_STATES),
            confirmations.c.change_id.is_(None),
        )
        .order_by(changes.c.told_at, changes.c.change_id)
        .limit(limit)
    )
    return [to_record(RecordedChange, row) for row in connection.execute(query)]


def running_confirmations(connection: Connection) -> list[Confirmation]:
    """Return the confirmations whose matrix is not known to be over."""
    running = confirmations.c.outcome == sa.literal_column(f"'{ConfirmationOutcome.RUNNING}'")
    query = sa.select(confirmations).where(running).order_by(confirmations.c.change_id)
    return [to_record(Confirmation, row) for row in connection.execute(query)]


def find_confirmation(connection: Connection, change_id: int) -> Confirmation | None:
    """Return the confirmation of a change, or None."""
    query = sa.select(confirmations).where(confirmations.c.change_id == change_id)
    return find_record(connection, Confirmation, query)


def add_confirmation(tx: Tx, confirmation: Confirmation) -> None:
    """Store the confirmation of a change that has none."""
    tx.connection.execute(confirmations.insert().values(**asdict(confirmation)))


def end_confirmation(
    tx: Tx,
    change_id: int,
    outcome: ConfirmationOutcome,
    *,
    delta: float | None,
    half_width: float | None,
) -> None:
    """Store what a confirmation shows."""
    values = {"outcome": outcome, "delta": delta, "half_width": half_width}
    statement = confirmations.update().where(confirmations.c.change_id == change_id)
    tx.connection.execute(statement.values(**values))
