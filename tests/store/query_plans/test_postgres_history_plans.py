"""Questions over the history read index ranges on PostgreSQL, too, as its planner sees a long one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.database import tables
from farm.database.transaction import bind_tx
from farm.store.matrices.candidates import labels_of_matrix
from farm.store.matrices.search import index_names
from farm.store.results.history.trends import points_of_series
from tests.services.results.history.test_latest_speedups import measured
from tests.store.query_plans.test_history_query_plans import ASKED
from tests.support.database.postgres import PostgresServer
from tests.support.database.sent_statements import sent_to
from tests.support.farm.changes import recorded_change
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig

#: Tables that grow with every matrix.
GROWING = (
    "measurements",
    "points",
    "cells",
    "matrices",
    "changes",
    "changed_series",
    "jobs",
    "name_trigrams",
)
#: The planner multiplies the rows of a page by the pages that a table really has: one or two.
AS_IF_LONG = sa.text(
    "UPDATE pg_class SET relpages = 1, reltuples = :rows WHERE oid IN (SELECT c.oid FROM pg_class c"
    " LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid"
    " WHERE coalesce(t.relname, c.relname) = ANY(:tables) AND c.relkind IN ('r', 'i'))"
)


@pytest.fixture(scope="module")
def long_history(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmRig]:
    """A farm with a row or more in each of the tables, which the planner takes for ten million."""
    with postgres.database("migrated") as name:
        farm = FarmRig(tmp_path_factory.mktemp("long_history"), postgres.url(name))
        try:
            for precision in ("float32", "int8-core"):
                farm.variant(precision)
            host = farm.host()
            host.plug_in("phone-1")
            host.earn_health()
            measured(farm, host, rounds=2)
            compute_points(farm)
            assert recorded_change(farm) is not None
            farm.write(bind_tx(index_names, now=farm.clock.now()), limit=9)
            farm.write(pretend_long)
            yield farm
        finally:
            farm.close()


def pretend_long(connection: Connection) -> None:
    """Let the planner take the tables for those of many years."""
    # How many values a column has is stored as a share of its rows.
    connection.exec_driver_sql("ANALYZE")
    # But of one with a value that most rows have, such as the one device.
    connection.exec_driver_sql("DELETE FROM pg_statistic WHERE stanumbers1[1] > 0.5")
    for rows, grown in ((10_000_000, GROWING), (10_000, ("matrices",))):
        connection.execute(AS_IF_LONG, {"rows": rows, "tables": [*grown]})


#: It may read the names of all matrices once, where more than `FEW` of them match.
READS_NAMES = {"speedups --name: the pairs of devices"}


@pytest.mark.parametrize("name", sorted(ASKED.keys() - READS_NAMES))
def test_postgresql_reads_an_index_range_for_a_question_over_the_history(
    long_history: FarmRig, name: str
) -> None:
    query, _ = ASKED[name]

    def explained(connection: Connection) -> list[dict[str, Any]]:
        with sent_to(connection) as sent:
            query(connection)
        return [
            connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sql}", values).scalar_one()[0]["Plan"]
            for sql, values in sent
            if sql.startswith(("SELECT", "WITH"))
        ]

    found = long_history.read(explained)
    assert found
    assert not [scan for plan in found for scan in unbounded_scans(plan)], found


@dataclass(frozen=True, slots=True)
class ManyKeys:
    """A table with forty rows of each of 1,250 keys: for a hundred of them it would be read whole."""

    table: sa.Table
    #: Columns that differ from those of the row that is copied, by the number of the copy.
    changed: Mapping[str, str]
    query: Callable[[Connection], object]
    index: str

    def copy_statement(self) -> str:
        names = [column.name for column in self.table.c]
        values = ", ".join(self.changed.get(name, f"t.{name}") for name in names)
        return (
            f"INSERT INTO {self.table} ({', '.join(names)})"
            f" SELECT {values} FROM (SELECT * FROM {self.table} LIMIT 1) t, generate_series(1, 50000) n"
        )


FEW_OF_MANY = {
    "the points of a series": ManyKeys(
        tables.points,
        {"cell_id": "1000000 + n", "series_id": "1000 + n / 40", "newest": "false"},
        lambda c: points_of_series(c, [SeriesId(1001)]),
        "ix_points_series",
    ),
    "the labels of a matrix": ManyKeys(
        tables.cells,
        {"cell_id": "1000000 + n", "matrix_id": "1000 + n / 40", "cell_index": "n"},
        lambda c: labels_of_matrix(c, [MatrixId(1001)]),
        "(matrix_id = ANY",
    ),
}


@pytest.mark.parametrize("name", FEW_OF_MANY)
def test_postgresql_finds_the_rows_of_a_key_by_an_index_in_a_history_of_a_year(
    long_history: FarmRig, name: str
) -> None:
    many = FEW_OF_MANY[name]

    def explained(connection: Connection) -> str:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        connection.exec_driver_sql(many.copy_statement())
        connection.exec_driver_sql(f"ANALYZE {many.table}")
        with sent_to(connection) as sent:
            many.query(connection)
        ((sql, bound),) = sent
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN {sql}", bound).scalars())

    engine = long_history.database.engine
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin() as undone:
        plan = explained(connection)
        undone.rollback()
    assert many.index in plan, plan
    assert f"Seq Scan on {many.table}" not in plan, plan


def unbounded_scans(node: dict[str, Any], *, is_limited: bool = False) -> list[str]:
    """The scans of growing tables by no range of an index, no partial index of newest points and no limit."""
    is_range = "Index Cond" in node or "Recheck Cond" in node
    is_bounded = is_range or is_limited or "newest" in node.get("Index Name", "")
    own = f"{node['Node Type']} on {node.get('Relation Name')}"
    found = [own] if node.get("Relation Name") in GROWING and not is_bounded else []
    for each in node.get("Plans", ()):
        found += unbounded_scans(each, is_limited=node["Node Type"] == "Limit")
    return found
