"""Sessions of standing matrices: what is missing, or due by the schedule, becomes a matrix.

A session is prepared in a transaction that only reads, and queued in a short one that writes if nothing that
it rests on has changed. The matrix, the versions that it covers and the next time of the schedule are stored
together: a farm that is killed in between queues the session later, once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.base.ids import Digest, MatrixId
from farm.core.base.spec_errors import matrix_invalid
from farm.core.errors import Conflict, FarmError, InvalidInput, NotFound
from farm.core.matrices.partial_rerun import compared_cells, select_cells
from farm.core.matrices.standing import StandingSpec
from farm.core.operations.event import FurtherWorkEvent
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.services.matrices.lazy_expansion import store_and_expand
from farm.services.matrices.standing.coverage import WantedCell, skip_problems, wanted_cells
from farm.services.matrices.standing.schedule import check_schedule, next_time
from farm.services.matrices.submit import (
    MatrixExpansion,
    PreparedMatrix,
    expand_matrix,
    prepare_expanded,
)
from farm.store.matrices import standing as standing_store
from farm.store.matrices.matrices import get_matrix
from farm.store.matrices.standing import QueuedCell, StandingMatrix
from farm.store.operations.events import record_event

_log = structlog.get_logger(__name__)

#: A session that is due for longer and cannot be queued is a problem.
OVERDUE_AFTER = timedelta(days=2)
#: What a session rests on changes between preparing and queueing it, which is rare.
_MAX_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSession:
    """What is to be done next for a standing matrix."""

    standing: StandingMatrix
    #: What was queued before, which the session rests on.
    queued: Mapping[Digest, QueuedCell] = field(default_factory=dict)
    #: None where no cell is to be measured.
    prepared: PreparedMatrix | None = None
    #: Index in the prepared matrix by version digest.
    index_by_digest: Mapping[Digest, int] = field(default_factory=dict)
    next_due_at: datetime | None = None
    #: Why nothing can be queued.
    problem: str | None = None
    #: What it is measured for.
    cause: str = ""

    @property
    def changes_nothing(self) -> bool:
        """Return whether there is nothing to store."""
        standing = self.standing
        return (
            self.prepared is None
            and self.problem == standing.problem
            and self.next_due_at == standing.next_due_at
        )


def stand(tx: Tx, spec: StandingSpec) -> int:
    """Let a matrix stand, or replace the spec of the one of its name; return its number.

    What is missing is queued later.

    Raises:
        MatrixInvalid: its schedule is none, or a skip covers nothing; or like `expand_matrix`.
    """
    _, next_due_at = check_standing(tx, spec)
    return standing_store.put_standing(tx, spec, next_due_at=next_due_at)


def check_standing(tx: Tx, spec: StandingSpec) -> tuple[MatrixExpansion, datetime | None]:
    """Return a matrix that is to stand over the current devices, and the first time of its schedule.

    Raises like `stand`.
    """
    next_due_at = None if spec.schedule is None else check_schedule(spec.schedule, now=tx.now)
    expanded = expand_matrix(tx.connection, spec.matrix)
    before = standing_store.find_last_standing(tx.connection, spec.matrix.name)
    # A file may stand again with skips that ended since.
    known = () if before is None else before.spec.skip
    if problems := skip_problems(expanded, spec.skip, known, today=tx.now.date()):
        raise matrix_invalid(problems)
    return expanded, next_due_at


@dataclass(slots=True)
class StandingSweep:
    """Queue what is due or missing of all matrices that stand; called periodically. Blocks."""

    database: Database
    clock: Clock

    def __call__(self) -> None:
        """Look at each standing matrix once; one that fails keeps no other waiting."""
        for standing in self.database.read(standing_store.list_standing):
            try:
                queue_next(self.database, self.clock, standing.name)
            except FarmError as error:
                _log.warning("standing_matrix_failed", name=standing.name, message=error.message)


def queue_next(database: Database, clock: Clock, name: str) -> MatrixId | None:
    """Queue what is due or missing of a standing matrix; None if there is nothing. Blocks.

    Raises:
        Conflict: what it rests on kept changing.
    """
    for _ in range(_MAX_TRIES):
        now = clock.now()
        session = database.read(bind_tx(prepare_session, now=now), name)
        if session is None or session.changes_nothing:
            return None
        is_queued, matrix_id = database.write(bind_tx(queue_session, now=now), session)
        if is_queued:
            return matrix_id
    raise Conflict(f"what {name} rests on kept changing", hint="it is tried again")


def prepare_session(tx: Tx, name: str) -> PreparedSession | None:
    """Prepare the next session of a standing matrix: nothing is stored. None if none of this name stands.

    Where its schedule is due, that is all cells but those of devices on which an earlier session is not over;
    else the cells that were never queued at their present versions, with what they are compared to.
    """
    standing = standing_store.find_standing(tx.connection, name)
    if standing is None:
        return None
    try:
        expanded = expand_matrix(tx.connection, standing.spec.matrix)
    except (InvalidInput, NotFound) as error:
        problem = f"{error.message} ({error.hint})" if error.hint else error.message
        return PreparedSession(standing=standing, next_due_at=standing.next_due_at, problem=problem)
    queued = standing_store.queued_cells(tx.connection, standing.standing_id)
    is_due = standing.next_due_at is not None and standing.next_due_at <= tx.now
    wanted = [
        cell for cell in wanted_cells(expanded, standing.spec.skip, today=tx.now.date()) if cell.skip is None
    ]
    missing = [cell for cell in wanted if cell.version_digest not in queued]
    chosen = _due(tx.connection, wanted, queued) if is_due else missing
    session = PreparedSession(standing=standing, queued=queued, next_due_at=standing.next_due_at)
    if is_due and standing.spec.schedule is not None:
        session = replace(session, next_due_at=next_time(standing.spec.schedule, after=tx.now))
    if not chosen:
        return replace(session, problem=_overdue_problem(tx, standing, wanted, queued))
    allowed = {cell.cell.index for cell in wanted}
    indexes = compared_cells(expanded.expansion.cells, {cell.cell.index for cell in chosen}) & allowed
    # Selected cells get new numbers, in their order.
    place = {index: number for number, index in enumerate(sorted(indexes))}
    part = replace(expanded, expansion=replace(select_cells(expanded.expansion, indexes), rejected=()))
    return replace(
        session,
        prepared=prepare_expanded(part),
        index_by_digest={
            cell.version_digest: place[cell.cell.index] for cell in wanted if cell.cell.index in place
        },
        cause="its schedule" if is_due else f"{len(missing)} missing cells",
    )


def _overdue_problem(
    tx: Tx, standing: StandingMatrix, wanted: Sequence[WantedCell], queued: Mapping[Digest, QueuedCell]
) -> str | None:
    """Return why a session is not queued that has been due for long; None where none is."""
    last_id = standing_store.last_matrix(tx.connection, standing.standing_id)
    if standing.spec.schedule is None or last_id is None or not wanted:
        return None
    since = max(get_matrix(tx.connection, last_id).created_at, standing.changed_at)
    due_at = next_time(standing.spec.schedule, after=since)
    if due_at is None or tx.now - due_at < OVERDUE_AFTER or _due(tx.connection, wanted, queued):
        return None
    due = f"the session that was due on {due_at:%Y-%m-%d}"
    return f"matrix {last_id} is not over on any of its devices, and {due} waits for that"


def _due(
    connection: Connection, wanted: Sequence[WantedCell], queued: Mapping[Digest, QueuedCell]
) -> list[WantedCell]:
    busy = standing_store.busy_devices(connection, sorted({cell.matrix_id for cell in queued.values()}))
    return [cell for cell in wanted if cell.cell.device_id not in busy]


def queue_session(tx: Tx, session: PreparedSession) -> tuple[bool, MatrixId | None]:
    """Store a session, and tell whether that was possible: False where what it rests on has changed.

    The matrix is its submitter's: of their share, and among their matrices.
    """
    standing, connection = session.standing, tx.connection
    if standing_store.find_standing(connection, standing.name) != standing:
        return False, None
    if session.prepared is None:
        standing_store.put_problem(tx, standing, session.problem)
        standing_store.put_next_due(tx, standing, session.next_due_at)
        return True, None
    if standing_store.queued_cells(connection, standing.standing_id) != session.queued:
        return False, None
    matrix_id = store_and_expand(tx.by(standing.submitted_by), session.prepared)
    if matrix_id is None:
        return False, None
    standing_store.put_problem(tx, standing, None)
    standing_store.put_next_due(tx, standing, session.next_due_at)
    standing_store.put_queued_cells(connection, standing.standing_id, matrix_id, session.index_by_digest)
    devices = len(session.prepared.job_template.parts)
    cause = f"matrix {matrix_id} on {devices} devices, for {session.cause}"
    record_event(tx, FurtherWorkEvent.STANDING_QUEUED, standing.name, cause=cause)
    return True, matrix_id
