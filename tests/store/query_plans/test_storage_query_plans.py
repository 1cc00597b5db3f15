"""What sweeps ask stays cheap however much is kept: the writer's thread waits for some of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import VariantId
from farm.database.engine import Database
from farm.store.files import artifacts
from farm.store.files.variants import find_current_variant, is_in_matrices
from farm.store.operations import history_retention
from farm.store.results import evidence as evidence_store
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.sample_rows import NOW

SWEPT: dict[str, tuple[Callable[[Connection], object], str]] = {
    "what unfinished matrices need": (artifacts.needed_digests, "ix_jobs_matrix_id"),
    "whether a matrix runs a file": (
        lambda c: is_in_matrices(c, VariantId(99)),
        "COVERING INDEX ix_cells_variant (variant_id=?)",
    ),
    "the current file of a name, and the one before": (
        lambda c: find_current_variant(c, "none"),
        "ix_variants_name (name=? AND name_order<?)",
    ),
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


_PAGE: dict[str, Any] = {"after": 1, "before": NOW + timedelta(days=1), "limit": 9}
HISTORY: dict[str, Callable[[Connection], object]] = {
    "old events": lambda c: history_retention.find_old_events(c, **_PAGE),
    "old sessions": lambda c: history_retention.find_old_sessions(c, **_PAGE),
    "old plans": lambda c: history_retention.find_old_plans(c, **_PAGE),
}
REMOVED: dict[str, Callable[[Connection], object]] = {
    "events": lambda c: history_retention.remove_events(c, [1, 2]),
    "sessions": lambda c: history_retention.remove_sessions(c, [97, 98]),
    "plans": lambda c: history_retention.remove_plans(c, [1, 2]),
}


@pytest.mark.parametrize("name", HISTORY)
def test_old_history_is_found_page_by_page_without_reading_all(sqlite_filled: Database, name: str) -> None:
    found = plans(sqlite_filled, HISTORY[name])
    assert "PRIMARY KEY (rowid>?)" in found[0][0], found
    if name == "old sessions":
        assert any("ix_attempts_session_id (session_id=?)" in step for step in found[0]), found
    steps = [step for plan in found for step in plan]
    assert not [step for step in steps if is_table_scan(step) and "json_each" not in step], steps


@pytest.mark.parametrize("name", REMOVED)
def test_old_history_is_removed_by_its_ids_and_what_refers_to_it_by_an_index(
    sqlite_filled: Database, name: str
) -> None:
    (plan,) = plans(sqlite_filled, REMOVED[name])
    assert any("USING INTEGER PRIMARY KEY (rowid=?)" in step for step in plan), plan
    assert not [step for step in plan if is_table_scan(step) and "json_each" not in step], plan


def test_the_oldest_event_and_the_last_removal_are_found_by_an_index(sqlite_filled: Database) -> None:
    ((oldest,), (last,)) = (
        *plans(sqlite_filled, history_retention.oldest_event_at),
        *plans(sqlite_filled, history_retention.last_removal),
    )
    assert "ix_events_at" in oldest
    assert "ix_events_kind (kind=?)" in last
