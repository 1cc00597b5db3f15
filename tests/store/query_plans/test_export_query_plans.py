"""A page of an export costs the same at every place of a long history."""

from farm.database.engine import Database
from farm.store.results.interchange import exported_rows
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.sample_rows import NOW


def test_pages_are_ranges_of_the_primary_key(sqlite_filled: Database) -> None:
    span = {"first": 3, "last": 9, "since": None, "until": NOW}
    found = [
        *plans(sqlite_filled, lambda c: exported_rows.last_of_page(c, after=3, until=99, limit=5)),
        *plans(sqlite_filled, lambda c: exported_rows.counted_rows(c, exported_rows.ROWS, **span)),
        *plans(sqlite_filled, lambda c: exported_rows.counted_rows(c, exported_rows.SAMPLES, **span)),
        *plans(sqlite_filled, lambda c: exported_rows.counted_rows(c, exported_rows.ATTEMPTS, **span)),
    ]
    for plan in found:
        assert any("measurements USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in step for step in plan), (
            plan
        )
        assert not [step for step in plan if "B-TREE" in step], plan


def test_changes_are_found_by_indexes(sqlite_filled: Database) -> None:
    found = [
        *plans(sqlite_filled, lambda c: exported_rows.changed_blocks(c, since=NOW, size=10)),
        *plans(sqlite_filled, lambda c: exported_rows.changed_matrices(c, after=5, since=NOW)),
    ]
    for plan in found:
        scans = [step for step in plan if is_table_scan(step)]
        # The sessions whose points are to be computed are few, whatever the history.
        assert not [step for step in scans if "stale_points" not in step and "point_progress" not in step], (
            plan
        )
