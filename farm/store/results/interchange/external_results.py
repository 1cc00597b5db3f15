"""Imported files and the results in them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest
from farm.core.operations.event import FarmEvent
from farm.database.tables import external_results, imports
from farm.database.transaction import Tx
from farm.harness.external.results import ExternalFile
from farm.store.newest_first import ListFilter, matching_newest_first
from farm.store.operations.events import record_event, record_if_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFilter:
    """Which results are meant; None does not restrict."""

    import_id: int | None = None
    model: str | None = None
    device: str | None = None
    tool: str | None = None
    metric: str | None = None
    #: Those that were withdrawn, too.
    withdrawn: bool = False


def add_import(
    tx: Tx, *, digest: Digest, name: str, size_bytes: int, harness: str | None, file: ExternalFile
) -> int:
    """Store a file's results, and record that; return the number of the import."""
    inserted = tx.connection.execute(
        imports.insert()
        .values(
            digest=digest,
            name=name,
            size_bytes=size_bytes,
            format=file.format,
            harness=harness,
            notes=list(file.notes),
            results=len(file.results),
            imported_at=tx.now,
            imported_by=tx.actor.removeprefix("user:"),
        )
        .returning(imports.c.import_id)
    )
    import_id: int = inserted.scalar_one()
    rows = [
        {
            **asdict(result),
            "import_id": import_id,
            "position": position,
            "samples": list(result.samples) or None,
            "settings": dict(result.settings),
        }
        for position, result in enumerate(file.results)
    ]
    tx.connection.execute(external_results.insert(), rows)
    cause = f"{len(rows)} results of {name}, {file.format}"
    record_event(tx, FarmEvent.IMPORT_ADDED, import_id, to_state="imported", cause=cause)
    return import_id


def withdraw_import(tx: Tx, import_id: int, reason: str) -> bool:
    """Withdraw an import for a reason; False if it was withdrawn, or there is none."""
    values = {"withdrawn_at": tx.now, "withdrawn_by": tx.actor.removeprefix("user:"), "reason": reason}
    return record_if_moved(
        tx,
        imports.update()
        .where(imports.c.import_id == import_id, imports.c.withdrawn_at.is_(None))
        .values(values),
        FarmEvent.IMPORT_WITHDRAWN,
        import_id,
        from_state="imported",
        to_state="withdrawn",
        cause=reason,
    )


def find_import_of(connection: Connection, digest: Digest) -> int | None:
    """Return the import of a file with these bytes that was not withdrawn, or None."""
    query = sa.select(imports.c.import_id).where(imports.c.digest == digest, imports.c.withdrawn_at.is_(None))
    return connection.execute(query).scalar_one_or_none()


def newest_imports(
    connection: Connection, which: ListFilter, *, before: int | None = None, limit: int
) -> list[dict[str, Any]]:
    """Return up to `limit` matching files, newest first: those before one, where it is given."""
    own = imports.c
    query = matching_newest_first(
        sa.select(imports),
        own.import_id,
        own.imported_at,
        own.name,
        own.imported_by,
        which=which,
        before=before,
    )
    return [dict(row) for row in connection.execute(query.limit(limit)).mappings()]


def find_import(connection: Connection, import_id: int) -> dict[str, Any] | None:
    """Return an imported file, or None."""
    row = connection.execute(sa.select(imports).where(imports.c.import_id == import_id)).mappings().first()
    return None if row is None else dict(row)


_COLUMNS: Sequence[sa.ColumnElement[Any]] = [
    *(column for column in external_results.c if column.name != "position"),
    imports.c.name.label("file"),
    *(imports.c[name] for name in ("format", "imported_at", "imported_by", "withdrawn_at")),
]


def list_external_results(
    connection: Connection, wanted: ExternalFilter, *, after: int, limit: int
) -> list[dict[str, Any]]:
    """Return the next results, in the order of their numbers."""
    query = (
        sa.select(*_COLUMNS)
        .join(imports, imports.c.import_id == external_results.c.import_id)
        .where(external_results.c.result_id > after)
        .order_by(external_results.c.result_id)
        .limit(limit)
    )
    for name in ("import_id", "model", "device", "tool", "metric"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(external_results.c[name] == value)
    if not wanted.withdrawn:
        query = query.where(imports.c.withdrawn_at.is_(None))
    return [dict(row) for row in connection.execute(query).mappings()]


def has_external_results(
    connection: Connection, *, model: str | None = None, device: str | None = None
) -> bool:
    """Return whether results of others that were not withdrawn are of this model, or of this device."""
    wanted = ExternalFilter(model=model, device=device)
    return bool(list_external_results(connection, wanted, after=0, limit=1))
