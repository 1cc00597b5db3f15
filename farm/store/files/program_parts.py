"""Parts that programs were built from."""

from collections.abc import Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.programs.built_with import ProgramPart
from farm.database.tables import programs
from farm.database.transaction import Tx


def put_parts(tx: Tx, program_id: int, parts: Sequence[ProgramPart]) -> None:
    """State what a program was built from, in place of an earlier statement."""
    tx.connection.execute(
        programs.update()
        .where(programs.c.program_id == program_id)
        .values(built_with=list(map(asdict, parts)))
    )


def parts_by_program(
    connection: Connection, *, harness: str | None = None
) -> dict[int, tuple[ProgramPart, ...]]:
    """Return by id what programs were built from: of one harness, or all; where it was stated."""
    query = sa.select(programs.c.program_id, programs.c.built_with).where(programs.c.built_with.is_not(None))
    if harness is not None:
        query = query.where(programs.c.harness == harness)
    return {
        row.program_id: tuple(ProgramPart(**part) for part in row.built_with)
        for row in connection.execute(query)
    }
