"""Where a job stands in its device's queue, counted no further than anybody wants to know."""

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import JobId, MatrixId
from farm.core.jobs.job import Job
from farm.database import tables
from farm.database.engine import Database
from farm.store.jobs import counts as job_counts
from farm.store.jobs.jobs import find_job
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.sample_rows import JOB, PHONE, add


def queued(connection: Connection, **changes: object) -> JobId:
    count = connection.exec_driver_sql("SELECT max(job_id) FROM jobs").scalar_one()
    add(connection, tables.jobs, JOB, round=count + 1, **changes)
    return JobId(connection.exec_driver_sql("SELECT max(job_id) FROM jobs").scalar_one())


def get(connection: Connection, job_id: JobId) -> Job:
    job = find_job(connection, job_id)
    assert job is not None
    return job


@pytest.mark.parametrize(("limit", "counted"), [(100, 5), (5, 5), (4, 4), (2, 2), (1, 1)])
def test_counting_ends_at_its_limit(filled: Database, limit: int, counted: int) -> None:
    def scene(connection: Connection) -> int:
        for _ in range(2):
            queued(connection)
        last = queued(connection)
        for priority in (3, 7, -1):
            queued(connection, priority=priority)
        queued(connection, priority=9, device_id="phone-2")
        first = get(connection, JobId(1))
        by_job = job_counts.count_before(connection, [get(connection, last), first], limit=limit)
        assert by_job[first.job_id] == min(2, limit)
        return by_job[last]

    # One that was there, two that came before, two that are more urgent.
    assert filled.write(scene) == counted


def test_a_place_is_counted_in_the_queues_index(sqlite_filled: Database) -> None:
    job = sqlite_filled.read(get, JobId(1))
    found = plans(sqlite_filled, lambda c: job_counts.count_before(c, [job], limit=10))
    steps = [step for plan in found for step in plan if "jobs" in step]
    assert sorted(steps) == [
        "SEARCH jobs USING INDEX ix_jobs_queue (device_id=? AND priority=? AND virtual_time<?)",
        "SEARCH jobs USING INDEX ix_jobs_queue (device_id=? AND priority=? AND virtual_time=? AND job_id<?)",
        "SEARCH jobs USING INDEX ix_jobs_queue (device_id=? AND priority>?)",
    ]


@pytest.mark.parametrize("query", [job_counts.open_jobs, job_counts.last_progress_at])
def test_what_is_left_of_a_matrix_is_found_by_its_index(sqlite_filled: Database, query: object) -> None:
    assert callable(query)
    found = plans(sqlite_filled, lambda c: query(c, MatrixId(1)))
    assert all(any("ix_jobs_matrix_id" in step for step in plan) for plan in found), found
    assert not [step for plan in found for step in plan if is_table_scan(step)], found


def test_the_queued_jobs_of_some_devices_are_found_by_their_queues(sqlite_filled: Database) -> None:
    ((step, *_),) = plans(sqlite_filled, lambda c: job_counts.queued_jobs(c, MatrixId(1), [PHONE]))
    assert step == "SEARCH jobs USING INDEX ix_jobs_queue (device_id=?)"


def test_the_jobs_of_others_are_none_of_a_matrix(filled: Database) -> None:
    def scene(connection: Connection) -> tuple[object, object, object]:
        queued(connection, device_id="phone-2")
        one, none = ([PHONE], ["phone-3"])
        return (
            job_counts.open_jobs(connection, MatrixId(1)),
            job_counts.queued_jobs(connection, MatrixId(1), one),
            job_counts.queued_jobs(connection, MatrixId(1), none),
        )

    found, of_one, of_none = filled.write(scene)
    assert (of_one, of_none) == ({PHONE: job_counts.OpenJobs(queued=1, first_queued=JobId(1))}, {})
    assert found == {
        PHONE: job_counts.OpenJobs(queued=1, first_queued=JobId(1)),
        "phone-2": job_counts.OpenJobs(queued=1, first_queued=JobId(2)),
    }
