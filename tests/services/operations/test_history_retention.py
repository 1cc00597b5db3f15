"""Old history goes by age: what goes, what never does, and what is shown of a row whose history went."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from farm.cli.jobs.attempt import attempt_report
from farm.core.base.ids import AttemptId, JobId, MatrixId
from farm.core.errors import FarmError
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.event import ROUTINE_EVENTS, AccessEvent
from farm.core.operations.retention import StorageRules
from farm.database.transaction import bind_tx
from farm.services.files.retention import Sweeper, sweep_storage
from farm.services.operations import history_retention as history_service
from farm.services.operations.history_retention import HistoryKind, HistoryWalk, count_old_history
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.explanations.jobs import explain_job
from farm.store.operations.history_retention import find_old_events, find_old_plans, find_old_sessions
from farm.wire.documents.files.storage import SweepResult
from tests.support.database.sent_statements import sent_to
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase, report_body

pytestmark = pytest.mark.usefixtures("both_variants")

KEEP_DAYS = 100
_KEEP = timedelta(days=KEEP_DAYS)
#: Raw output goes before the history.
OLD = StorageRules(history_keep_days=KEEP_DAYS, evidence_keep_days=10)
WITH_OUTPUT = StorageRules(history_keep_days=KEEP_DAYS)


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


@pytest.fixture
def finished(farm: FarmRig, host: HostRig) -> MatrixId:
    """A matrix that ended long ago."""
    matrix_id = farm.submit()
    assert host.run() == 10
    grow_old(farm)
    return matrix_id


def grow_old(farm: FarmRig, days: float = 2 * KEEP_DAYS) -> None:
    farm.clock.advance(timedelta(days=days).total_seconds())


def sweep(farm: FarmRig, rules: StorageRules = OLD) -> SweepResult:
    return sweep_storage(farm.database, farm.blobs, rules, farm.clock)


def removed(result: SweepResult) -> tuple[int, int, int]:
    return result.events, result.sessions, result.plans


def kinds(farm: FarmRig, subject: str) -> set[str]:
    rows = farm.rows("SELECT DISTINCT kind FROM events WHERE subject = :subject", subject=subject)
    return {row["kind"] for row in rows}


def count(farm: FarmRig, of: str) -> int:
    (row,) = farm.rows(f"SELECT count(*) AS n FROM {of}")
    return int(row["n"])


def a_job(farm: FarmRig, matrix_id: MatrixId) -> tuple[JobId, AttemptId]:
    rows = farm.rows(
        "SELECT job_id, attempt_id FROM jobs WHERE matrix_id = :id ORDER BY job_id", id=matrix_id
    )
    return JobId(rows[0]["job_id"]), AttemptId(rows[0]["attempt_id"])


@pytest.mark.invariant("I17")
def test_what_goes_is_recorded_and_what_people_decided_stays(farm: FarmRig, finished: MatrixId) -> None:
    before = count(farm, "events")
    result = sweep(farm)
    assert result.events >= 40, "four of each job at least"
    assert result.plans == 11, "of ten jobs and a check"
    assert kinds(farm, "attempt") == set()
    assert kinds(farm, "job") == set()
    assert kinds(farm, "matrix") == {"matrix_submitted"}
    assert {"device_found", "device_numbered", "device_health_changed"} <= kinds(farm, "device")
    told = farm.rows("SELECT subject_id, actor, cause FROM events WHERE kind = 'history_expired'")
    assert [(row["subject_id"], row["actor"]) for row in told] == [("events", "farm"), ("plans", "farm")]
    assert told[0]["cause"].startswith(f"{result.events} events, the oldest from ")
    assert told[0]["cause"].endswith("by the rule of 100 days")
    stored = count(farm, "events WHERE kind <> 'evidence_expired'") - len(told)
    assert stored == before - result.events


@pytest.mark.invariant("I12")
def test_a_number_stays_explainable_after_its_history_went(farm: FarmRig, finished: MatrixId) -> None:
    job_id, attempt_id = a_job(farm, finished)
    sweep(farm, StorageRules(evidence_keep_days=10))
    before = farm.read(explain_job, job_id)
    assert sweep(farm).plans > 0
    after = farm.read(explain_job, job_id)
    assert after.side == before.side
    assert after.job == before.job
    assert after.use == before.use
    view = farm.read(attempt_view, attempt_id)
    assert view.plan is None
    assert view.reading is not None
    shown = attempt_report(view).plain
    assert "expired after its output; `farm explain job" in " ".join(shown.split())
    assert "output expired on" in shown
    assert farm.speedups(finished)


def test_history_stays_for_as_long_as_the_raw_output_does(farm: FarmRig, finished: MatrixId) -> None:
    of_work = "events WHERE subject IN ('job', 'attempt')"
    before = count(farm, of_work)
    assert sweep(farm, WITH_OUTPUT).plans == 0
    assert count(farm, of_work) == before
    _, attempt_id = a_job(farm, finished)
    assert farm.read(attempt_view, attempt_id).plan is not None


def test_without_a_limit_nothing_goes(farm: FarmRig, finished: MatrixId) -> None:
    assert removed(sweep(farm, StorageRules(evidence_keep_days=10))) == (0, 0, 0)


def test_what_would_go_is_counted_and_stays(farm: FarmRig, finished: MatrixId) -> None:
    sweep(farm, StorageRules(evidence_keep_days=10))
    counted = count_old_history(farm.database, farm.clock, _KEEP)
    assert counted == count_old_history(farm.database, farm.clock, _KEEP)
    assert counted[HistoryKind.EVENTS] > 40
    result = sweep(farm)
    assert removed(result) == (counted["events"], counted["sessions"], counted["plans"])
    assert set(count_old_history(farm.database, farm.clock, _KEEP).values()) == {0}


def test_what_is_young_stays(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    host.run()
    grow_old(farm, KEEP_DAYS - 1)
    assert removed(sweep(farm)) == (0, 0, 0)


@pytest.mark.invariant("I1", "I17")
def test_live_work_keeps_its_history_whatever_its_age(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.MEASURING)])
    grow_old(farm)
    of_job = "SELECT count(*) AS n FROM events WHERE subject = 'attempt' AND subject_id = :id"
    before = farm.rows(of_job, id=str(assignment.attempt_id))
    sweep(farm)
    assert farm.rows(of_job, id=str(assignment.attempt_id)) == before
    assert kinds(farm, "session") == {"session_opened"}, "its session is open"
    host.exchange([phase(assignment, AttemptState.REPORTING)])
    assert host.report(assignment.attempt_id, good_evidence(assignment)).counted
    host.clean(assignment)
    assert host.run() == 9
    assert farm.matrix(matrix_id).state == "finished"


def test_the_last_presence_of_a_device_stays(farm: FarmRig, host: HostRig) -> None:
    for _ in range(3):
        host.phones.clear()
        host.exchange()
        host.plug_in("phone-1")
        host.exchange()
    host.phones.clear()
    host.exchange()
    grow_old(farm)
    sweep(farm)
    rows = farm.rows("SELECT to_state FROM events WHERE kind = 'device_presence_changed' ORDER BY event_id")
    assert [row["to_state"] for row in rows] == ["absent"]


@pytest.mark.invariant("I9")
def test_a_session_goes_that_no_attempt_refers_to_and_its_epoch_is_not_used_again(
    farm: FarmRig, host: HostRig
) -> None:
    for _ in range(3):
        host.restart()
    grow_old(farm)
    before = farm.rows("SELECT session_id, epoch FROM sessions ORDER BY session_id")
    assert sweep(farm).sessions == 2
    left = farm.rows("SELECT session_id, epoch FROM sessions ORDER BY session_id")
    assert left == [before[0], before[-1]], "the one with the check, and the last"
    host.restart()
    (last,) = farm.rows("SELECT max(epoch) AS epoch FROM sessions")
    assert last["epoch"] == before[-1]["epoch"] + 1


def test_a_report_after_the_plan_went_is_answered_as_before(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    (assignment,) = host.exchange().assignments
    body = report_body(good_evidence(assignment))
    first = host.report_bytes(assignment.attempt_id, body)
    host.clean(assignment)
    host.run()
    grow_old(farm)
    assert sweep(farm).plans > 0
    assert host.report_bytes(assignment.attempt_id, body) == first
    other = report_body(good_evidence(assignment, sample_us=7.0))
    with pytest.raises(FarmError, match="was settled by report"):
        host.report_bytes(assignment.attempt_id, other)
    assert farm.matrix(matrix_id).state == "finished"


def test_a_sweep_that_is_killed_goes_on_where_it_was(
    farm: FarmRig, finished: MatrixId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_service, "PAGE_ROWS", 7)
    sweep(farm, StorageRules(evidence_keep_days=10))

    class Killed(Exception):
        pass

    def kill(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DELETE FROM events"):
            deletions.append(statement)
            if len(deletions) == 4:
                raise Killed

    deletions: list[str] = []
    sa.event.listen(farm.database.engine, "before_cursor_execute", kill)
    with pytest.raises(Killed):
        HistoryWalk()(farm.database, farm.clock, _KEEP)
    sa.event.remove(farm.database.engine, "before_cursor_execute", kill)
    (told,) = farm.rows("SELECT count(*) AS n FROM events WHERE kind = 'history_expired'")
    assert told["n"] == 3, "each transaction told of what it deleted"
    sweep(farm)
    assert kinds(farm, "attempt") == kinds(farm, "job") == set()


def test_kept_rows_are_looked_at_once_a_day(farm: FarmRig, finished: MatrixId) -> None:
    walk = HistoryWalk()
    walk(farm.database, farm.clock, _KEEP)
    with sent_to(farm.database.engine) as at_once:
        walk(farm.database, farm.clock, _KEEP)
    assert len([text for text, _ in at_once if "FROM events" in text]) == 1, "where it was, nothing is older"
    sweep(farm, StorageRules(evidence_keep_days=10))
    assert walk(farm.database, farm.clock, _KEEP)["events"] == 0
    grow_old(farm, 1)
    assert walk(farm.database, farm.clock, _KEEP)["events"] > 0


def test_a_page_takes_the_same_statements_however_many_rows_it_has(farm: FarmRig, finished: MatrixId) -> None:
    sweep(farm, StorageRules(evidence_keep_days=10))
    numbers: list[list[int]] = []
    for limit in (15, 1000):
        of_limit: list[int] = []
        for find in (find_old_events, find_old_sessions, find_old_plans):
            with sent_to(farm.database.engine) as executed:
                farm.read(find, after=10, before=farm.clock.now() - _KEEP, limit=limit)
            of_limit.append(len([text for text, _ in executed if text.startswith("SELECT")]))
        numbers.append(of_limit)
    assert numbers[1] <= [5, 1, 1]
    assert numbers[0] <= numbers[1]


def test_a_clock_that_jumped_ahead_removes_no_history(farm: FarmRig, host: HostRig) -> None:
    sweeper = Sweeper(farm.database, farm.blobs, OLD, farm.clock)
    farm.submit()
    host.run()
    farm.clock.step(_KEEP.total_seconds() * 2)
    assert removed(sweeper()) == (0, 0, 0)


def test_the_events_of_a_cancelled_matrix_go(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user:ann"), matrix_id)
    grow_old(farm)
    sweep(farm, WITH_OUTPUT)
    assert count(farm, "events WHERE kind = 'job_cancelled'") == 0
    assert kinds(farm, "matrix") == {"matrix_submitted", "matrix_cancelled"}


def test_every_decision_of_a_person_is_kept() -> None:
    decisions = ("matrix_", "host_", "device_admitted", "device_retired", "device_reserved", "join_token_")
    decisions += ("access_token_", "program_", "device_health_changed", "device_updated", "job_reparsed")
    # To read something decides nothing.
    kinds = ROUTINE_EVENTS - {AccessEvent.SAMPLES_READ}
    assert not [kind for kind in kinds if kind.startswith(decisions)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_events_go_in_short_transactions(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    host.run()
    (job_id, _), total = a_job(farm, matrix_id), 100_000
    fill = sa.text(
        "INSERT INTO events (at, actor, kind, subject, subject_id, from_state, to_state)"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :total)"
        " SELECT (SELECT max(at) FROM events), 'farm', 'job_requeued', 'job', CAST(:job AS TEXT),"
        " 'active', 'queued' FROM n"
    )
    farm.write(lambda c: c.execute(fill, {"total": total, "job": str(job_id)}))
    grow_old(farm)
    longest = 0

    def note(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        nonlocal longest
        if statement.startswith("DELETE FROM events"):
            longest = max(longest, cursor.rowcount)

    sa.event.listen(farm.database.engine, "after_cursor_execute", note)
    result = sweep(farm)
    sa.event.remove(farm.database.engine, "after_cursor_execute", note)
    assert result.events > total
    assert 0 < longest <= history_service.PAGE_ROWS
    assert count(farm, "events WHERE kind = 'job_requeued'") == 0
