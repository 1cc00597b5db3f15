"""Hot queries stay index lookups: what SQLite says it would do, for the statements the code really sends."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, CellId, DeviceId, FactsId, HostId, JobId, MatrixId, SessionId
from farm.core.devices.host_state import SessionState
from farm.core.jobs.job import JobState
from farm.core.operations.alarm import AlarmKind, AlarmSubject
from farm.core.runs.measurement import CellState
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.store.checks import failures as device_failures
from farm.store.checks import reference_runs
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.hosts import hosts
from farm.store.jobs import attempts, jobs, queues
from farm.store.jobs import counts as job_counts
from farm.store.jobs import durations as job_durations
from farm.store.jobs import jobs as job_store
from farm.store.matrices import equivalent_cells, lazy_expansion, matrices
from farm.store.matrices.candidates import CandidateFilter, page_of_candidates
from farm.store.matrices.cell_states import cells_in_state
from farm.store.matrices.search import list_matrices
from farm.store.operations import alarms as alarm_store
from farm.store.operations import event_log, heartbeats
from farm.store.results import evidence as evidence_store
from farm.store.results import measurements, placements, provenance, recurrence
from farm.store.results.settle import report_context
from farm.store.upkeep import device_actions
from tests.support.database.sample_rows import DIGEST, NOW
from tests.support.database.sent_statements import sent_to

Plan = list[str]


def plans(database: Database, query: Callable[[Connection], object]) -> list[Plan]:
    """How SQLite carries out each statement that `query` sends."""

    def explained(connection: Connection) -> list[Plan]:
        with sent_to(connection) as sent:
            query(connection)
        return [
            [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
            for sql, values in sent
            if not sql.startswith("INSERT")
        ]

    return database.write(explained)


PHONE, HOST, JOB = DeviceId("phone-1"), HostId("bench-1"), JobId(1)
ALARM = AlarmKind.DEVICE_SILENT, AlarmSubject.DEVICE, PHONE

HOT: dict[str, tuple[Callable[[Connection], object], str]] = {
    "the device actions of a host": (
        lambda c: device_actions.open_device_actions(c, host_id=HOST),
        "uq_device_actions_one_open_per_kind",
    ),
    "whether a phone has an errand": (
        lambda c: devices.list_devices(c, host_id=HOST),
        "uq_device_actions_one_open_per_kind",
    ),
    "CPUs that device actions wait for": (
        device_actions.cpus_to_keep_idle,
        "uq_device_actions_one_open_per_kind",
    ),
    "where series ran last": (
        lambda c: placements.last_placements(c, [DIGEST]),
        "measurements_1 USING INDEX ix_measurements_series_id",
    ),
    "what passes of a cell showed": (
        lambda c: placements.earlier_runs(c, CellId(1), FactsId(1), DIGEST),
        "ix_measurements_cell_id",
    ),
    "what waits for a phone": (lambda c: device_workload.count_waiting(c, [PHONE]), "ix_jobs_queue"),
    "the last attempts on a phone": (
        lambda c: device_workload.last_attempts(c, PHONE, limit=10),
        "attempts_1 (device_id=?)",
    ),
    "what happened to a phone": (
        lambda c: event_log.last_events(c, "device", PHONE, kinds=("device_reserved",)),
        "ix_events_subject",
    ),
    "the heads of queues": (lambda c: queues.queue_heads(c, [PHONE, DeviceId("phone-2")]), "ix_jobs_queue"),
    "the checks that wait": (
        lambda c: queues.queued_checks(c, [PHONE, DeviceId("phone-2")]),
        "uq_jobs_one_open_check_per_device",
    ),
    "what a host needs next": (lambda c: queues.next_job_files(c, HOST), "ix_jobs_queue"),
    "what is planned for a host": (lambda c: queues.next_jobs_by_plan(c, HOST), "ix_jobs_queue"),
    "whether a check is open": (
        lambda c: jobs.add_check(Tx(c, NOW), PHONE, cause="test"),
        "uq_jobs_one_open_check_per_device",
    ),
    "what a session owns": (
        lambda c: attempts.live_attempts(c, SessionId(1)),
        "ix_attempts_session_live",
    ),
    "grants nobody started": (
        lambda c: attempts.unstarted_attempts(c, after=timedelta(hours=1), now=NOW),
        "_live",
    ),
    "how much runs on each host": (device_workload.runs_by_host, "_live"),
    "CPUs on which something runs": (device_workload.busy_cpus, "uq_attempts_one_live_per_cpu"),
    "the measurements of jobs": (
        lambda c: provenance.runs_of_jobs(c, [JOB, JobId(2)]),
        "uq_measurements_one_accepted_per_job",
    ),
    "the first open job of a cell": (
        lambda c: jobs.first_open_job(c, CellId(1)),
        "sqlite_autoindex_jobs_1 (cell_id=?)",
    ),
    "the tries of a job": (lambda c: attempts.past_attempts(c, JOB), "ix_attempts_job_id"),
    "the last endings on a device": (
        lambda c: report_context.recent_outcomes(c, PHONE, 5),
        "attempts_1 (device_id=?)",
    ),
    "the reports of an attempt": (
        lambda c: evidence_store.digests_by_attempt(c, [AttemptId(1)]),
        "evidence_1 (attempt_id=?)",
    ),
    "the phones of a host": (lambda c: devices.list_devices(c, host_id=HOST), "ix_devices_host_id"),
    "the phones of hosts": (lambda c: devices.devices_of_hosts(c, [HOST]), "ix_devices_host_id"),
    "phones that were seen as before": (
        lambda c: heartbeats.record_devices_seen(Tx(c, NOW), [HOST]),
        "ix_devices_host_id",
    ),
    "whether a job waits for a session's host": (
        lambda c: heartbeats.heartbeat_states(c, [SessionId(1)]),
        "ix_jobs_queue",
    ),
    "whether a session's host takes no work": (
        lambda c: heartbeats.heartbeat_states(c, [SessionId(1)]),
        "uq_incidents_one_open_per_kind",
    ),
    "the live attempts of phones": (
        lambda c: devices.list_devices(c, host_id=HOST),
        "uq_attempts_one_live_per_device",
    ),
    "a phone's last checks": (lambda c: device_failures.last_checks(c, PHONE), "ix_jobs_checks"),
    "a phone's newest check": (lambda c: report_context.last_check_id(c, PHONE), "ix_jobs_checks"),
    "the reference runs of a kind": (
        lambda c: reference_runs.runs_of_kind(c, "Pixel 8", DIGEST, before=NOW),
        "ix_reference_runs_reference_key",
    ),
    "a device's reference runs": (
        lambda c: reference_runs.own_runs(c, PHONE, limit=24),
        "ix_reference_runs_device_id",
    ),
    "when a phone could last be used": (
        lambda c: event_log.last_online_at(c, PHONE),
        "ix_events_subject",
    ),
    "when a series had results": (
        lambda c: recurrence.result_times(c, [1], since=NOW),
        "ix_measurements_series_id",
    ),
    "an open alarm": (
        lambda c: alarm_store.clear_alarm(Tx(c, NOW), ALARM, cause="it is back"),
        "uq_alarms_one_open_per_kind",
    ),
    "a host by its credential": (
        lambda c: hosts.find_host_by_credential(c, "x"),
        "hosts_2 (credential_hash=?)",
    ),
    "a host's session": (lambda c: hosts.current_session(c, HOST), "uq_sessions_one_live_per_host"),
    "sessions that went quiet": (
        lambda c: hosts.sessions_last_heard_before(c, SessionState.LIVE, NOW),
        "uq_sessions_one_live_per_host",
    ),
    "the jobs of a matrix": (
        lambda c: job_store.list_jobs(c, MatrixId(1), after=7, limit=100),
        "ix_jobs_matrix_id (matrix_id=? AND state=? AND job_id>?)",
    ),
    "the jobs of a page of cells": (
        lambda c: job_store.alike_jobs_of_cells(c, [CellId(1), CellId(2)]),
        "jobs_1 (cell_id=?)",
    ),
    "the cells of a matrix in a state": (
        lambda c: cells_in_state(c, MatrixId(1), [CellState.FAILED], after=7, until=9, limit=100),
        "cells_1 (matrix_id=? AND cell_index>? AND cell_index<?)",
    ),
    "what came of a cell": (
        lambda c: cells_in_state(c, MatrixId(1), [CellState.FAILED], after=7, until=9, limit=100),
        "ix_measurements_cell_id (cell_id=?)",
    ),
    "the cells of a phone": (
        lambda c: matrices.list_cells(c, MatrixId(1), device_id=PHONE),
        "ix_cells_of_device (matrix_id=? AND device_id=?)",
    ),
    "a page of cells": (
        lambda c: matrices.page_of_cells(c, MatrixId(1), after=7, limit=100),
        "cells_1 (matrix_id=? AND cell_index>?)",
    ),
    "the next batches of a lazy expansion": (
        lambda c: lazy_expansion.next_batches(c, MatrixId(1), jobs=2000),
        "ix_lazy_expansions_next (matrix_id=?)",
    ),
    "the cells of a matrix": (lambda c: matrices.list_cells(c, MatrixId(1)), "cells_1 (matrix_id=?)"),
    "what an agent is to stop": (
        lambda c: attempts.attempts_to_stop(c, SessionId(1)),
        "ix_attempts_session_live",
    ),
    "the jobs that a cancellation ends": (
        lambda c: jobs.cancel_jobs(Tx(c, NOW, "user"), MatrixId(1), JobState.QUEUED, after=7, limit=5),
        "ix_jobs_matrix_id (matrix_id=? AND state=? AND job_id>?)",
    ),
    "the jobs that the next step of a cancellation ends on a device": (
        lambda c: jobs.cancel_jobs(
            Tx(c, NOW, "user"), MatrixId(1), JobState.QUEUED, device_id=DeviceId("phone-1"), after=7, limit=5
        ),
        "ix_jobs_",
    ),
    "how far a matrix is on its devices": (
        lambda c: job_counts.tally_by_device(c, MatrixId(1)),
        "ix_jobs_matrix_id",
    ),
    "when the jobs of a matrix ended": (
        lambda c: job_counts.last_finish_times(c, MatrixId(1), limit=30),
        "ix_jobs_matrix_id",
    ),
    "the queues before a new job": (
        lambda c: job_durations.queue_lengths(c, min_priority=0),
        "ix_jobs_queue",
    ),
    "the latest runs of a harness": (
        lambda c: job_durations.recent_run_durations(c, "h"),
        "SEARCH measurements USING INTEGER PRIMARY KEY (rowid>?)",
    ),
    "the runs of two cells": (
        lambda c: provenance.runs_of_cells(c, [CellId(1), CellId(2)]),
        "ix_measurements_cell_id",
    ),
    "the order of a block": (
        lambda c: provenance.fences_by_block(c, MatrixId(1), PHONE),
        "ix_cells_of_device (matrix_id=? AND device_id=?)",
    ),
    "one cell": (lambda c: matrices.get_cell(c, CellId(1)), "INTEGER PRIMARY KEY"),
    "the measurements of a matrix": (
        lambda c: measurements.accepted_measurements(c, MatrixId(1)),
        "ix_measurements_cell_id",
    ),
    "the measurements of a page of cells": (
        lambda c: measurements.accepted_of_cells(c, [CellId(1), CellId(2)]),
        "ix_measurements_cell_id (cell_id=?)",
    ),
    "a page of candidates": (
        lambda c: page_of_candidates(c, MatrixId(1), CandidateFilter(), after=7, limit=100),
        "(matrix_id=? AND cell_index>?)",
    ),
    "the baselines of a page": (
        lambda c: matrices.cells_at(c, MatrixId(1), [1, 2]),
        "(matrix_id=? AND cell_index=?)",
    ),
    "the measurement of an attempt": (
        lambda c: measurements.find_reading(c, AttemptId(1)),
        "measurements_1 (attempt_id=?)",
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_query_uses_its_index_and_scans_no_table(sqlite_filled: Database, name: str) -> None:
    query, index = HOT[name]
    found = plans(sqlite_filled, query)
    assert any(index in step for plan in found for step in plan), found
    assert not [step for plan in found for step in plan if is_table_scan(step)], found


def is_table_scan(step: str) -> bool:
    """A scan that no index narrows; a scan of a small partial index is one row for each thing alive, one of
    a subquery (`anon`) reads what that found."""
    rows = ("SCAN CONSTANT ROW", "SCAN anon_", "SCAN (subquery")
    return step.startswith("SCAN") and "INDEX" not in step and not step.startswith(rows)


def test_phones_that_a_work_lost_are_found_by_what_was_lost(sqlite_filled: Database) -> None:
    (plan,) = plans(sqlite_filled, lambda c: equivalent_cells.losses_of_cell(c, MatrixId(1), CellId(1)))
    assert any("ix_attempts_lost_by_device" in step for step in plan), plan
    assert not any("ix_jobs_matrix_id" in step for step in plan), plan


@pytest.mark.parametrize("look", [queues.queue_heads, queues.queued_checks])
@pytest.mark.fault(54)
def test_the_head_of_a_queue_is_found_without_sorting(
    sqlite_filled: Database, look: Callable[..., object]
) -> None:
    (plan,) = plans(sqlite_filled, lambda c: look(c, [PHONE]))
    assert not any("B-TREE" in step for step in plan), plan


def test_what_comes_next_is_found_without_sorting_the_queues(sqlite_filled: Database) -> None:
    (plan,) = plans(sqlite_filled, lambda c: queues.next_job_files(c, HOST))
    inside = plan[plan.index("CORRELATED SCALAR SUBQUERY 1") :]
    assert not any("B-TREE" in step for step in inside), plan


def test_listing_matrices_takes_a_fixed_number_of_statements(sqlite_filled: Database) -> None:
    def listing(connection: Connection) -> object:
        page = list_matrices(connection, before=MatrixId(2), limit=10)
        matrix_ids = [matrix.matrix_id for matrix in page]
        return job_counts.tallies(connection, matrix_ids)

    found = plans(sqlite_filled, listing)
    assert len(found) == 2
    # Jobs of other matrices are not read.
    steps = [step for plan in found for step in plan]
    assert not any(step.startswith(("SCAN jobs", "SCAN cells", "SCAN matrices")) for step in steps), steps
