"""Programs of harnesses: the bundle for each ABI."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, digest_of
from farm.core.programs.bundle import Bundle, BundleFile, bundle_digest
from farm.database.tables import artifacts, program_files, programs


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A harness's program for one ABI."""

    program_id: int
    harness: str
    #: `any` for scripts, which run wherever there is a shell.
    abi: str
    #: The version that it makes of a series.
    digest: Digest
    bundle: Bundle
    #: How a generic harness is called and read, as its author wrote it; None where the farm has an adapter.
    definition: Mapping[str, Any] | None
    #: Flags of the adapter that this program does not know.
    missing_flags: frozenset[str]
    created_at: datetime
    #: When somebody last registered it.
    chosen_at: datetime


def program_digest(bundle: Bundle, definition: Mapping[str, Any] | None) -> Digest:
    """The version of a program: its bundle, and for a generic harness how it is called and read."""
    if definition is None:
        return bundle_digest(bundle)
    text = json.dumps([bundle_digest(bundle), definition], sort_keys=True, separators=(",", ":"))
    return digest_of(text.encode())


def put_program(
    connection: Connection,
    *,
    harness: str,
    abi: str,
    bundle: Bundle,
    definition: Mapping[str, Any] | None = None,
    missing_flags: frozenset[str] = frozenset(),
    now: datetime,
) -> Program:
    """Register a program whose artifacts are there; from now on it is the one in use for its ABI.

    Registering it again makes no second one.

    Raises:
        sqlalchemy.exc.IntegrityError: one of its files is no artifact.
    """
    digest = program_digest(bundle, definition)
    known = connection.execute(
        sa.select(programs.c.program_id).where(
            programs.c.harness == harness, programs.c.abi == abi, programs.c.digest == digest
        )
    ).scalar_one_or_none()
    if known is not None:
        values = {"chosen_at": now, "missing_flags": sorted(missing_flags)}
        connection.execute(programs.update().where(programs.c.program_id == known).values(values))
        return get_program(connection, known)
    inserted = connection.execute(
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
            created_at=now,
            chosen_at=now,
        )
        .returning(programs.c.program_id)
    )
    program_id: int = inserted.scalar_one()
    connection.execute(program_files.insert(), [_file_row(program_id, file) for file in bundle.files])
    return get_program(connection, program_id)


def _file_row(program_id: int, file: BundleFile) -> dict[str, object]:
    return {
        "program_id": program_id,
        "path": file.path,
        "digest": file.digest,
        "executable": file.executable,
    }


def list_programs(connection: Connection, *, harness: str | None = None) -> list[Program]:
    """All programs, or one harness's, by when they were last registered: the last of an ABI is in use."""
    query = _with_files_query()
    return _programs(connection, query if harness is None else query.where(programs.c.harness == harness))


def current_programs(connection: Connection, harness: str) -> dict[str, Program]:
    """The program in use by ABI."""
    return {program.abi: program for program in list_programs(connection, harness=harness)}


def get_program(connection: Connection, program_id: int) -> Program:
    """A program that exists: cells refer to it by a foreign key."""
    (program,) = _programs(connection, _with_files_query().where(programs.c.program_id == program_id))
    return program


def programs_by_id(connection: Connection, program_ids: Iterable[int]) -> dict[int, Program]:
    """Several programs at once; ids that nothing has are missing."""
    found = _programs(connection, _by_ids_query(), program_ids=list(program_ids))
    return {program.program_id: program for program in found}


@cache
def _by_ids_query() -> sa.Select[Any]:
    return _with_files_query().where(programs.c.program_id.in_(sa.bindparam("program_ids", expanding=True)))


@cache
def _with_files_query() -> sa.Select[Any]:
    return (
        sa.select(
            programs,
            program_files.c.path,
            program_files.c.digest.label("file_digest"),
            program_files.c.executable,
            artifacts.c.size_bytes,
        )
        .join(program_files, program_files.c.program_id == programs.c.program_id)
        .join(artifacts, artifacts.c.digest == program_files.c.digest)
        .order_by(programs.c.chosen_at, programs.c.program_id, program_files.c.path)
    )


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
    return Program(
        program_id=first.program_id,
        harness=first.harness,
        abi=first.abi,
        digest=Digest(first.digest),
        bundle=Bundle(files=files, entry=first.entry, env=first.env, command=tuple(first.command)),
        definition=first.definition,
        missing_flags=frozenset(first.missing_flags),
        created_at=first.created_at,
        chosen_at=first.chosen_at,
    )
