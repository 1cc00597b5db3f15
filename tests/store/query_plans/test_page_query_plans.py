"""Pages read index ranges of the work: what they show does not cost more in a larger farm."""

from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.engine import Database
from farm.store.devices.fleet import ids_called
from farm.store.jobs.counts import tally_by_device
from farm.store.jobs.finished_matrices import FinishedMatrices
from farm.store.jobs.open_work import count_queued, count_running
from farm.store.jobs.running_matrices import RunningMatrices
from farm.store.matrices.candidates import page_of_devices
from tests.store.query_plans.test_sqlite_query_plans import PHONE, plans

ASKED: dict[str, tuple[Callable[[Connection], object], str]] = {
    "a device by its id or its label": (lambda c: ids_called(c, PHONE), "MULTI-INDEX OR"),
    "queued jobs": (count_queued, "ix_jobs_queue (device_id>?)"),
    "live attempts": (count_running, "one_live"),
    "whether matrices are finished": (
        lambda c: FinishedMatrices().find(c, [MatrixId(1)]),
        "ix_jobs_matrix_id (matrix_id=? AND state=?)",
    ),
    "the jobs of a matrix on some devices": (
        lambda c: tally_by_device(c, MatrixId(1), [PHONE]),
        "ix_cells_of_device (matrix_id=? AND device_id=?)",
    ),
    "devices of a matrix": (
        lambda c: page_of_devices(c, MatrixId(1), after=DeviceId(""), limit=9),
        "ix_cells_of_device (matrix_id=? AND device_id>?)",
    ),
}


def test_what_happened_to_a_running_matrix_is_read_by_ranges_of_indexes(sqlite_filled: Database) -> None:
    running = RunningMatrices()
    with sqlite_filled.engine.connect() as connection:
        running.find(connection, [MatrixId(1)])
    found = plans(sqlite_filled, lambda c: running.find(c, [MatrixId(1)]))
    steps = [step for plan in found for step in plan]
    for index in (
        "ix_jobs_matrix_id (matrix_id=? AND state=? AND job_id>?)",
        "ix_events_kind (kind=? AND event_id>? AND event_id<?)",
        "jobs USING INTEGER PRIMARY KEY (rowid=?)",
    ):
        assert any(index in step for step in steps), found
    assert not [step for step in steps if step.startswith(("SCAN jobs", "SCAN events"))]
    # The newest ends come first by the index, so that a limit bounds what is read.
    assert not [step for step in steps if "FOR ORDER BY" in step], found


@pytest.mark.parametrize("name", ASKED)
def test_a_page_reads_a_range_of_an_index(sqlite_filled: Database, name: str) -> None:
    query, index = ASKED[name]
    found = plans(sqlite_filled, query)
    assert any(index in step for plan in found for step in plan), found
    assert not [step for plan in found for step in plan if step.startswith("SCAN jobs")], found
