"""Artifacts: the stored files, when they were last used, and which may be deleted."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest
from farm.core.jobs.job import JobState
from farm.core.operations.event import FarmEvent
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import (
    artifacts,
    cells,
    is_one_of,
    jobs,
    matrices,
    measurements,
    program_files,
    variant_files,
    variants,
)
from farm.database.transaction import Tx
from farm.store.matrices import lazy_expansion
from farm.store.operations.events import record_event

_UNFINISHED = (JobState.QUEUED, JobState.ACTIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """An artifact's row, which stays when its bytes are deleted."""

    digest: Digest
    size_bytes: int
    created_at: datetime
    used_at: datetime
    expired_at: datetime | None
    #: Whose upload put the bytes there; None where an earlier release did.
    stored_by: str | None


def put_artifact(tx: Tx, digest: Digest, size_bytes: int) -> bool:
    """Record that the bytes are stored, again or for the first time; False if they were stored before.

    Bytes that were not there before count for the actor.
    """
    artifact = find_artifact(tx.connection, digest)
    if artifact is None:
        row = {"digest": digest, "size_bytes": size_bytes, "created_at": tx.now, "used_at": tx.now}
        tx.connection.execute(artifacts.insert().values({**row, "stored_by": tx.actor}))
        return True
    there = artifacts.update().where(artifacts.c.digest == digest)
    tx.connection.execute(there.values(used_at=tx.now, expired_at=None))
    if artifact.expired_at is not None:
        tx.connection.execute(there.values(stored_by=tx.actor))
        record_event(
            tx.by("farm"),
            FarmEvent.ARTIFACT_RESTORED,
            digest,
            from_state="expired",
            to_state="kept",
            cause="sent again",
        )
    return artifact.expired_at is not None


def find_artifact(connection: Connection, digest: Digest) -> Artifact | None:
    """Return an artifact, expired or not, or None."""
    return find_record(connection, Artifact, sa.select(artifacts).where(artifacts.c.digest == digest))


_USE_STATEMENT = (
    artifacts.update()
    .where(artifacts.c.digest.in_(sa.bindparam("digests", expanding=True)))
    .values(used_at=sa.bindparam("moment"))
)


def mark_used(tx: Tx, digests: Collection[Digest]) -> None:
    """Record that these artifacts are used now."""
    tx.connection.execute(_USE_STATEMENT, {"digests": sorted(digests), "moment": tx.now})


def stored_artifacts(connection: Connection, among: Collection[Digest] | None = None) -> list[Artifact]:
    """Return the stored artifacts, or those of them in `among`, least recently used first."""
    query = sa.select(artifacts).where(artifacts.c.expired_at.is_(None))
    if among is not None:
        query = query.where(artifacts.c.digest.in_(among))
    rows = connection.execute(query.order_by(artifacts.c.used_at, artifacts.c.digest))
    return [to_record(Artifact, row) for row in rows]


def stored_sizes(connection: Connection) -> dict[Digest, int]:
    """Return the bytes of each stored artifact."""
    query = sa.select(artifacts.c.digest, artifacts.c.size_bytes).where(artifacts.c.expired_at.is_(None))
    return {Digest(digest): size_bytes for digest, size_bytes in connection.execute(query)}


def stored_bytes(connection: Connection, actor: str | None = None) -> int:
    """Return the bytes of all stored artifacts together, or of those that an actor stored."""
    total = sa.select(sa.func.coalesce(sa.func.sum(artifacts.c.size_bytes), 0))
    total = total.where(artifacts.c.expired_at.is_(None))
    if actor is not None:
        total = total.where(artifacts.c.stored_by == actor)
    return int(connection.execute(total).scalar_one())


def expired_at_by_digest(connection: Connection) -> dict[Digest, datetime]:
    """Return when each expired artifact expired."""
    query = sa.select(artifacts.c.digest, artifacts.c.expired_at).where(artifacts.c.expired_at.is_not(None))
    return {Digest(digest): expired_at for digest, expired_at in connection.execute(query)}


def artifacts_stored_by(connection: Connection, actor: str) -> list[Artifact]:
    """Return the stored artifacts that count for an actor, the largest first."""
    is_theirs = (artifacts.c.stored_by == actor) & artifacts.c.expired_at.is_(None)
    query = sa.select(artifacts).where(is_theirs).order_by(artifacts.c.size_bytes.desc(), artifacts.c.digest)
    return [to_record(Artifact, row) for row in connection.execute(query)]


def expire_artifacts(
    tx: Tx, digests: Iterable[Digest], *, cause: str, kind: FarmEvent = FarmEvent.ARTIFACT_EXPIRED
) -> list[Digest]:
    """Mark artifacts as expired and return those that were not before.

    The event is one of the farm's, or one of the actor's where they removed the file.
    """
    expired: list[Digest] = []
    for digest in digests:
        is_stored = (artifacts.c.digest == digest) & artifacts.c.expired_at.is_(None)
        if tx.connection.execute(artifacts.update().where(is_stored).values(expired_at=tx.now)).rowcount:
            by = tx if kind is FarmEvent.ARTIFACT_REMOVED else tx.by("farm")
            record_event(by, kind, digest, from_state="kept", to_state="expired", cause=cause)
            expired.append(digest)
    return expired


def needed_digests(connection: Connection) -> set[Digest]:
    """Return the artifacts that unfinished matrices need: all cells of a block may be repeated."""
    unfinished = sa.exists().where(
        jobs.c.matrix_id == matrices.c.matrix_id, is_one_of(jobs.c.state, _UNFINISHED)
    )
    open_matrices = sa.select(matrices.c.matrix_id).where(unfinished)
    return _digests_of_cells(connection, cells.c.matrix_id.in_(open_matrices)) | _digests_of_unstored_cells(
        connection
    )


def _digests_of_unstored_cells(connection: Connection) -> set[Digest]:
    """Return the artifacts of cells that are not stored yet."""
    variant_ids, program_ids = lazy_expansion.needed_files(connection)
    models = sa.select(variant_files.c.digest).where(variant_files.c.variant_id.in_(variant_ids))
    files = sa.select(program_files.c.digest).where(program_files.c.program_id.in_(program_ids))
    return set(connection.execute(sa.union(models, files)).scalars())


def files_beside(connection: Connection, digests: Collection[Digest]) -> set[Digest]:
    """Return the other files of the variants that have one of these, but those that anything else has."""
    losing = sa.select(variant_files.c.variant_id).where(
        is_among(connection, variant_files.c.digest, digests)
    )
    elsewhere = sa.select(variant_files.c.digest).where(variant_files.c.variant_id.not_in(losing))
    beside = sa.select(variant_files.c.digest).where(
        variant_files.c.variant_id.in_(losing),
        variant_files.c.digest.not_in(elsewhere),
        variant_files.c.digest.not_in(sa.select(program_files.c.digest)),
    )
    return set(connection.execute(beside).scalars()) - set(digests)


def measured_digests(connection: Connection) -> set[Digest]:
    """Return the artifacts with measurements, and the records that measured libraries were tuned by."""
    is_measured = cells.c.cell_id.in_(sa.select(measurements.c.cell_id))
    records = variants.c.manifest[("tuning", "records")].as_string()
    of_tuned = (
        sa.select(records)
        .join(cells, cells.c.variant_id == variants.c.variant_id)
        .where(records.is_not(None), is_measured)
        .distinct()
    )
    tuned_by = {Digest(each) for each in connection.execute(of_tuned).scalars()}
    return _digests_of_cells(connection, is_measured) | tuned_by


def _digests_of_cells(connection: Connection, which: sa.ColumnElement[bool]) -> set[Digest]:
    models = (
        sa.select(variant_files.c.digest)
        .join(cells, cells.c.variant_id == variant_files.c.variant_id)
        .where(which)
    )
    files = (
        sa.select(program_files.c.digest)
        .join(cells, cells.c.program_id == program_files.c.program_id)
        .where(which)
    )
    return set(connection.execute(sa.union(models, files)).scalars())
