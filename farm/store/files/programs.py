"""Programs of harnesses, each for one ABI."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, digest_of
from farm.core.programs.bundle import Bundle, BundleFile, bundle_digest
from farm.database.rows import to_record
from farm.database.tables import artifacts, program_files, programs
from farm.database.transaction import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A harness's program for one ABI."""

    program_id: int
    harness: str
    #: `any` for scripts, which run on any ABI.
    abi: str
    #: The program version of its series.
    digest: Digest
    bundle: Bundle
    #: The definition of a generic harness; None if the farm has an adapter.
    definition: Mapping[str, Any] | None
    #: Flags of the adapter that this program does not support.
    missing_flags: frozenset[str]
    created_at: datetime
    #: The time of its last registration.
    chosen_at: datetime
    #: Of the first of its files that expired.
    expired_at: datetime | None


def program_digest(bundle: Bundle, definition: Mapping[str, Any] | None) -> Digest:
    """Return the digest of a program: of its bundle and, for a generic harness, its definition."""
    if definition is None:
        return bundle_digest(bundle)
    text = json.dumps([bundle_digest(bundle), definition], sort_keys=True, separators=(",", ":"))
    return digest_of(text.encode())


def put_program(
    tx: Tx,
    *,
    harness: str,
    abi: str,
    bundle: Bundle,
    definition: Mapping[str, Any] | None = None,
    missing_flags: frozenset[str] = frozenset(),
) -> Program:
    """Register a program whose artifacts are stored, and make it the current one for its ABI.

    Registering it again adds no second row.

    Raises:
        sqlalchemy.exc.IntegrityError: one of its files is no artifact.
    """
    digest = program_digest(bundle, definition)
    known_id = tx.connection.execute(
        sa.select(programs.c.program_id).where(
            programs.c.harness == harness, programs.c.abi == abi, programs.c.digest == digest
        )
    ).scalar_one_or_none()
    if known_id is not None:
        values = {"chosen_at": tx.now, "missing_flags": sorted(missing_flags)}
        tx.connection.execute(programs.update().where(programs.c.program_id == known_id).values(values))
        return get_program(tx.connection, known_id)
    inserted = tx.connection.execute(
        programs.insert()
        .values(
            harness=harness,
            abi=abi,
            digest=digest,
            entry=bundle.entry,
            env=dict(bundle.env),
            command=list(bundle.command),
            definition=None if definition is None else dict(definition),
            missing_flags=sorted(missing_flags),
            created_at=tx.now,
            chosen_at=tx.now,
        )
        .returning(programs.c.program_id)
    )
    program_id: int = inserted.scalar_one()
    rows = [
        {"program_id": program_id, "path": file.path, "digest": file.digest, "executable": file.executable}
        for file in bundle.files
    ]
    tx.connection.execute(program_files.insert(), rows)
    return get_program(tx.connection, program_id)


_WITH_FILES_QUERY = (
    sa.select(
        programs,
        program_files.c.path,
        program_files.c.digest.label("file_digest"),
        program_files.c.executable,
        artifacts.c.size_bytes,
        artifacts.c.expired_at,
    )
    .join(program_files, program_files.c.program_id == programs.c.program_id)
    .join(artifacts, artifacts.c.digest == program_files.c.digest)
    .order_by(programs.c.chosen_at, programs.c.program_id, program_files.c.path)
)


def list_programs(connection: Connection, *, harness: str | None = None) -> list[Program]:
    """Return all programs, or those of one harness, in the order of registration; the last of an ABI is
    current.
    """
    query = _WITH_FILES_QUERY
    return _programs(connection, query if harness is None else query.where(programs.c.harness == harness))


def current_programs(connection: Connection, harness: str) -> dict[str, Program]:
    """Return the current program by ABI."""
    return {program.abi: program for program in list_programs(connection, harness=harness)}


def get_program(connection: Connection, program_id: int) -> Program:
    """Return a program that exists: cells refer to it by a foreign key."""
    (program,) = _programs(connection, _WITH_FILES_QUERY.where(programs.c.program_id == program_id))
    return program


_BY_IDS_QUERY = _WITH_FILES_QUERY.where(
    programs.c.program_id.in_(sa.bindparam("program_ids", expanding=True))
)


def programs_by_id(connection: Connection, program_ids: Iterable[int]) -> dict[int, Program]:
    """Return programs by id; unknown ids are missing."""
    matching = _programs(connection, _BY_IDS_QUERY, program_ids=list(program_ids))
    return {program.program_id: program for program in matching}


def _programs(connection: Connection, query: sa.Select[Any], **parameters: object) -> list[Program]:
    rows_by_id: dict[int, list[sa.Row[Any]]] = {}
    for row in connection.execute(query, parameters):
        rows_by_id.setdefault(row.program_id, []).append(row)
    return [_program(rows) for rows in rows_by_id.values()]


def _program(rows: list[sa.Row[Any]]) -> Program:
    first = rows[0]
    files = tuple(
        BundleFile(
            path=row.path, digest=row.file_digest, size_bytes=row.size_bytes, executable=row.executable
        )
        for row in rows
    )
    bundle = Bundle(files=files, entry=first.entry, env=first.env, command=tuple(first.command))
    expired_at = min((row.expired_at for row in rows if row.expired_at is not None), default=None)
    return to_record(Program, first, bundle=bundle, expired_at=expired_at)
