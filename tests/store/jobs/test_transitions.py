"""Compare-and-set moves: a lost race is a value, and leaves no event."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId, MatrixId, SessionId
from farm.core.devices.device import Health
from farm.core.devices.host_state import SessionState
from farm.core.jobs.attempt import AttemptEvent
from farm.core.jobs.job import JobEvent, JobState
from farm.core.runs.measurement import Outcome
from farm.core.runs.plan import RunPlan
from farm.database import tables
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.store.devices import devices
from farm.store.devices import transitions as device_transitions
from farm.store.hosts import hosts
from farm.store.jobs import attempts, jobs, queues
from farm.store.jobs import counts as job_counts
from tests.support.database.sample_rows import ATTEMPT, CHECK, NOW, PHONE, add

PLAN = RunPlan(harness="h", backend="cpu", files=(), argv=("true",), timeout_s=1.0)


def events(connection: Connection) -> int:
    return len(connection.execute(tables.events.select()).all())


def the_job(connection: Connection) -> jobs.Job:
    found = jobs.find_job(connection, JobId(1))
    assert found is not None
    return found


def the_attempt(connection: Connection) -> attempts.Attempt:
    claim = attempts.NewAttempt(
        job_id=JobId(1),
        device_id=DeviceId(PHONE),
        host_id=HostId("bench-1"),
        facts_id=None,
        fence=1,
        cpu_domain=None,
        plan=PLAN,
    )
    (attempt_id,) = attempts.add_attempts(Tx(connection, NOW), [claim], session_id=SessionId(1))
    found = attempts.find_attempt(connection, attempt_id)
    assert found is not None
    return found


def race(connection: Connection, move: Callable[[], bool]) -> list[tuple[bool, int]]:
    """The same move twice, from the same row as it was read before; after each, how many events there are."""
    return [(move(), events(connection)) for _ in range(2)]


@pytest.mark.invariant("I6")
def test_a_job_moves_once_from_where_it_was_read(filled: Database) -> None:
    def moves(connection: Connection) -> list[tuple[bool, int]]:
        job = the_job(connection)
        return race(connection, lambda: jobs.move_job(Tx(connection, NOW, "test"), job, JobEvent.CLAIMED))

    assert filled.write(moves) == [(True, 1), (False, 1)]


@pytest.mark.invariant("I4")
def test_a_job_does_not_move_when_its_attempt_changed_in_between(filled: Database) -> None:
    def moves(connection: Connection) -> bool:
        job = the_job(connection)
        connection.execute(tables.jobs.update().values(attempt_id=7))
        return jobs.move_job(Tx(connection, NOW, "test"), job, JobEvent.CLAIMED)

    assert not filled.write(moves)
    assert filled.read(events) == 0


@pytest.mark.invariant("I6", "I16")
def test_a_job_that_was_cancelled_since_it_was_read_is_not_activated(filled: Database) -> None:
    def activates(connection: Connection) -> tuple[bool, jobs.Job]:
        tx = Tx(connection, NOW, "test")
        read = the_job(connection)
        jobs.move_job(tx, read, JobEvent.CANCELLED, values={"outcome": Outcome.CANCELLED})
        return jobs.activate_jobs(tx, [(read, AttemptId(7))]), the_job(connection)

    activated, job = filled.write(activates)
    assert not activated
    assert (job.state, job.attempt_id) == (JobState.FINISHED, None)


@pytest.mark.invariant("I2", "I6")
def test_a_job_is_activated_once(filled: Database) -> None:
    def activates(connection: Connection) -> list[bool]:
        read = the_job(connection)
        return [
            jobs.activate_jobs(Tx(connection, NOW, "test"), [(read, AttemptId(number))]) for number in (7, 8)
        ]

    assert filled.write(activates) == [True, False]


@pytest.mark.parametrize("event", list(JobEvent))
@pytest.mark.invariant("I6")
def test_a_finished_job_never_moves(filled: Database, event: JobEvent) -> None:
    def moves(connection: Connection) -> tuple[bool, jobs.Job]:
        outcome = {"outcome": Outcome.FAILED}
        jobs.move_job(Tx(connection, NOW, "test"), the_job(connection), JobEvent.FINISHED, values=outcome)
        done = the_job(connection)
        return jobs.move_job(Tx(connection, NOW, "test"), done, event), the_job(connection)

    moved, job = filled.write(moves)
    assert not moved
    assert (job.state, job.outcome, job.finished_at) == (JobState.FINISHED, Outcome.FAILED, NOW)


@pytest.mark.parametrize("event", list(AttemptEvent))
@pytest.mark.invariant("I6")
def test_an_attempt_moves_once_from_where_it_was_read(filled: Database, event: AttemptEvent) -> None:
    def moves(connection: Connection) -> list[tuple[bool, int]]:
        attempt = the_attempt(connection)
        return race(connection, lambda: attempts.move_attempt(Tx(connection, NOW, "test"), attempt, event))

    # One event is the claim's.
    assert filled.write(moves) == [(True, 2), (False, 2)]


@pytest.mark.invariant("I9")
@pytest.mark.fault(43)
def test_a_session_moves_once(filled: Database) -> None:
    def moves(connection: Connection) -> list[tuple[bool, int]]:
        session = hosts.current_session(connection, HostId("bench-1"))
        assert session is not None
        return race(
            connection,
            lambda: hosts.move_session(Tx(connection, NOW), session, SessionState.SILENT, cause="test"),
        )

    assert filled.write(moves) == [(True, 1), (False, 1)]


def test_health_moves_from_where_it_may_and_once(filled: Database) -> None:
    def moves(connection: Connection) -> list[tuple[bool, int]]:
        return race(
            connection,
            lambda: device_transitions.move_health(
                Tx(connection, NOW), DeviceId(PHONE), sources=[Health.GOOD], to=Health.SUSPECT, cause="test"
            ),
        )

    assert filled.write(moves) == [(True, 1), (False, 1)]


@pytest.mark.invariant("I3", "I11")
@pytest.mark.fault(39)
def test_an_older_beat_changes_nothing(filled: Database) -> None:
    def beats(connection: Connection) -> list[bool]:
        return [hosts.record_heartbeat(Tx(connection, NOW), SessionId(1), seq=seq) for seq in (3, 2, 3, 4)]

    assert filled.write(beats) == [True, False, False, True]


@pytest.mark.invariant("I16")
def test_a_second_check_of_a_device_is_not_queued(filled: Database) -> None:
    def adds(connection: Connection) -> list[bool]:
        return [
            jobs.add_check(Tx(connection, NOW), DeviceId(PHONE), cause="test") is not None for _ in range(2)
        ]

    assert filled.write(adds) == [True, False]
    assert filled.read(events) == 1


@pytest.mark.invariant("I11")
@pytest.mark.fault(50)
@pytest.mark.parametrize(("behind_s", "kept_s"), [(2.0, 0.0), (0.0, 0.0), (-3.0, 3.0), (86_400.0, 0.0)])
def test_a_beat_by_a_clock_that_is_behind_brings_no_deadline_nearer(
    filled: Database, behind_s: float, kept_s: float
) -> None:
    """A clock that was set back by a day would keep the session for a day; the reaper sees to that."""
    filled.write(bind_tx(hosts.record_heartbeat, now=NOW), SessionId(1), seq=7)
    filled.write(bind_tx(hosts.record_heartbeat, now=NOW - timedelta(seconds=behind_s)), SessionId(1), seq=8)
    session = filled.read(hosts.find_session, SessionId(1))
    assert session is not None
    assert session.heartbeat_at == NOW + timedelta(seconds=kept_s)


@pytest.mark.invariant("I3")
def test_fences_only_rise(filled: Database) -> None:
    risen = [filled.write(devices.raise_fences, [DeviceId(PHONE)]) for _ in range(3)]
    assert risen == [{PHONE: 1}, {PHONE: 2}, {PHONE: 3}]


def test_a_check_goes_before_everything_users_asked_for(filled: Database) -> None:
    filled.write(add, tables.jobs, CHECK, priority=jobs.CHECK_PRIORITY)
    for look in (queues.queue_heads, queues.queued_checks):
        assert filled.read(look, [DeviceId(PHONE)])[DeviceId(PHONE)].job_id == 2


@pytest.mark.invariant("I14")
def test_a_benchmark_is_no_check(filled: Database) -> None:
    assert filled.read(queues.queue_heads, [DeviceId(PHONE)])[DeviceId(PHONE)].job_id == 1
    assert filled.read(queues.queued_checks, [DeviceId(PHONE)]) == {}


@pytest.mark.invariant("I2")
def test_jobs_become_active_together_or_the_caller_learns_of_it(filled: Database) -> None:
    def claims(connection: Connection) -> list[bool]:
        job, attempt = the_job(connection), the_attempt(connection)
        pairs = [(job, attempt.attempt_id)]
        return [jobs.activate_jobs(Tx(connection, NOW, "test"), pairs) for _ in range(2)]

    assert filled.write(claims) == [True, False]


def test_tallies_count_jobs_by_outcome_or_state(filled: Database) -> None:
    done = {"state": "finished", "outcome": "succeeded", "finished_at": NOW}
    for round in (2, 3):
        filled.write(
            add, tables.jobs, {**CHECK, "kind": "benchmark"}, matrix_id=1, cell_id=1, round=round, **done
        )
    tally = filled.read(job_counts.tallies, [MatrixId(1)])[MatrixId(1)]
    assert tally.jobs_by_outcome == {"queued": 1, "succeeded": 2}
    assert tally.is_open
    assert tally.last_finished_at == NOW


def test_attempts_are_listed_by_job(filled: Database) -> None:
    filled.write(add, tables.attempts, ATTEMPT, state="lost")
    filled.write(add, tables.attempts, ATTEMPT, fence=2)
    found = filled.read(job_counts.attempt_ids_by_job, [JobId(1), JobId(2)])
    assert found == {JobId(1): (AttemptId(1), AttemptId(2))}
