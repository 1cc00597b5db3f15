"""What cells run and what their baselines run, as far as a comparison says it: by one statement."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Manifest
from farm.database.rows import rows_query, rows_text
from farm.database.tables import cells, programs, variants

_MANIFEST = TypeAdapter(Manifest)


class ComparedCell(NamedTuple):
    """A candidate, and the cell that it is compared with; None: the one that its matrix planned."""

    cell_id: CellId
    baseline_cell_id: CellId | None


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """What one side of a comparison runs."""

    harness: str
    #: Of a generic harness; None if the farm has an adapter.
    definition: Mapping[str, Any] | None
    settings: Mapping[str, SettingValue]
    #: Of its model file; None if the harness runs no model.
    manifest: Manifest | None


def compared_sides(
    connection: Connection, asked: Collection[ComparedCell]
) -> dict[ComparedCell, tuple[ComparedSide, ComparedSide]]:
    """Return what candidates run, each with what its baseline runs; those without one are missing."""
    query = _sides_query(connection.dialect.name)
    manifests: dict[int | None, Manifest | None] = {None: None}

    def side(
        harness: str, definition: Any, settings: Any, variant_id: int | None, manifest: Any
    ) -> ComparedSide:
        if variant_id not in manifests:
            manifests[variant_id] = _MANIFEST.validate_python(manifest, strict=False)
        return ComparedSide(harness, definition, settings, manifests[variant_id])

    rows = connection.execute(query, {"rows": rows_text([*asked])}).all()
    return {ComparedCell(*row[:2]): (side(*row[2:7]), side(*row[7:])) for row in rows}


# Built once: that takes longer than its answer.
@cache
def _sides_query(dialect_name: str) -> sa.Select[Any]:
    columns = [sa.column(name, sa.BigInteger) for name in ComparedCell._fields]
    asked = rows_query(dialect_name, columns, "").subquery("asked")
    own, its, planned = (cells.alias(name) for name in ("own", "its", "planned"))
    planned_id = (
        sa.select(planned.c.cell_id)
        .where(planned.c.matrix_id == own.c.matrix_id, planned.c.cell_index == own.c.baseline_index)
        .correlate(own)
        .scalar_subquery()
    )
    joined: sa.FromClause = asked.join(own, own.c.cell_id == asked.c.cell_id).join(
        its, its.c.cell_id == sa.func.coalesce(asked.c.baseline_cell_id, planned_id)
    )
    read: list[sa.ColumnElement[Any]] = [*asked.c]
    for cell in (own, its):
        program, variant = programs.alias(), variants.alias()
        joined = joined.join(program, program.c.program_id == cell.c.program_id).outerjoin(
            variant, variant.c.variant_id == cell.c.variant_id
        )
        read += [
            program.c.harness,
            program.c.definition,
            cell.c.settings,
            cell.c.variant_id,
            variant.c.manifest,
        ]
    return sa.select(*read).select_from(joined)
