"""How far back the matrices of a pair are looked for is bounded, on both databases."""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, SeriesId
from farm.database.engine import Database
from farm.store.results.past_pairs import MAX_STEPS, SeriesPast, past_measurements
from tests.support.database.sample_rows import (
    ATTEMPT,
    CELL,
    JOB,
    MEASUREMENT,
    NOW,
    PHONE,
    SERIES,
    tables,
)

LAST = 2 + MAX_STEPS + 20
POINT = {
    "device_id": PHONE,
    "baseline_series_id": None,
    "replica": 1,
    "slot": 1,
    "rounds": 0,
    "left_out": 0,
    "control_level": 0,
    "began_at": NOW,
    "ended_at": NOW,
    "newest": False,
}
MATRIX = {
    "name": "m",
    "harness": "h",
    "spec": {"name": "m", "harness": "h", "devices": [{}]},
    "rounds": 5,
    "seed": 1,
    "rejected_count": 0,
    "created_at": NOW,
}


@pytest.fixture
def seldom_together(filled: Database) -> Database:
    """Matrix 2 measured two series; those behind it one of them in turn."""
    filled.write(_fill)
    return filled


def _fill(connection: Connection) -> None:
    def add_all(table: sa.Table, row: dict[str, Any], changes: list[dict[str, Any]]) -> None:
        connection.execute(table.insert(), [{**row, **change} for change in changes])

    connection.execute(tables.series.insert().values({**SERIES, "series_digest": "b" * 64}))
    # Cell 1 is there, of matrix 1.
    series_of_cells = [(2, 1), (2, 2), *((number, 1 + number % 2) for number in range(3, LAST + 1))]
    add_all(tables.matrices, MATRIX, [{"matrix_id": number} for number in range(2, LAST + 1)])
    places = [{"matrix_id": matrix_id, "cell_index": series_id} for matrix_id, series_id in series_of_cells]
    add_all(tables.cells, CELL, places)
    points = [
        {"cell_id": number, "matrix_id": matrix_id, "series_id": series_id}
        for number, (matrix_id, series_id) in enumerate(series_of_cells, 2)
    ]
    add_all(tables.points, POINT, points)
    add_all(tables.jobs, JOB, [{"matrix_id": 2, "cell_id": cell_id} for cell_id in (2, 3)])
    attempts = [{"job_id": 2, "fence": 1}, {"job_id": 3, "fence": 2}]
    add_all(tables.attempts, {**ATTEMPT, "state": "finished", "outcome": "succeeded"}, attempts)
    measured = [
        {"job_id": 1 + number, "attempt_id": number, "cell_id": 1 + number, "series_id": number}
        for number in (1, 2)
    ]
    add_all(tables.measurements, MEASUREMENT, measured)
    progress = {"progress_id": 1, "measurement_id": 2, "version": 1}
    connection.execute(tables.point_progress.insert().values(progress))


@pytest.mark.parametrize(("before", "is_found"), [(3, True), (MAX_STEPS, True), (LAST, False)])
def test_matrices_of_one_series_alone_are_passed_over_up_to_a_number(
    seldom_together: Database, before: int, is_found: bool
) -> None:
    asked = SeriesPast(SeriesId(1), SeriesId(2), MatrixId(before))
    alone = SeriesPast(SeriesId(2), SeriesId(2), MatrixId(5))
    found = seldom_together.read(past_measurements, [asked, alone], matrices=6)
    assert [[own.matrix_id for own in matrix] for matrix in found[asked]] == [[2, 2]] * is_found
    # Its points of matrices without a measurement say nothing.
    assert [[own.series_id for own in matrix] for matrix in found[alone]] == [[2]]
