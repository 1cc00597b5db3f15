"""What sweeps ask stays cheap however much is kept: the writer's thread waits for some of it."""

from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from farm.database.engine import Database
from farm.store.files import artifacts
from farm.store.results import evidence as evidence_store
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.sample_rows import NOW

SWEPT: dict[str, tuple[Callable[[Connection], object], str]] = {
    "what unfinished matrices need": (artifacts.needed_digests, "ix_jobs_matrix_id"),
    "what all output takes": (evidence_store.retained_bytes, "COVERING INDEX ix_evidence_stored"),
    "output older than a day": (
        lambda c: list(evidence_store.expirable_reports(c, before=NOW, limit=200)),
        "ix_evidence_stored (counted=? AND received_at<?)",
    ),
    "the oldest output": (
        lambda c: list(evidence_store.expirable_reports(c, limit=200)),
        "ix_evidence_stored (counted=?)",
    ),
}


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_looks_into_an_index(sqlite_filled: Database, name: str) -> None:
    query, index = SWEPT[name]
    found = plans(sqlite_filled, query)
    assert any(index in step for plan in found for step in plan), found


@pytest.mark.parametrize("name", ["output older than a day", "the oldest output"])
def test_the_oldest_output_is_found_without_sorting_or_reading_all(
    sqlite_filled: Database, name: str
) -> None:
    query, _ = SWEPT[name]
    steps = [step for plan in plans(sqlite_filled, query) for step in plan]
    assert not [step for step in steps if "B-TREE" in step or is_table_scan(step)], steps
