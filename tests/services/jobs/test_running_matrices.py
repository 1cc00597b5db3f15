"""A running matrix is counted once, then by what happened since, and again where that does not hold."""

import threading
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.jobs.attempt import AttemptState
from farm.services.matrices.views import list_matrix_lines
from farm.store.jobs.counted_matrices import CountedMatrices
from farm.store.jobs.running_jobs import RunningJobs
from farm.store.jobs.running_matrices import MAX_AGE_S, RunningMatrices
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, phase


@pytest.fixture
def host(farm: FarmRig, both_variants: None) -> HostRig:
    return farm.healthy_host("phone-1", "phone-2")


def one_round(farm: FarmRig, host: HostRig) -> None:
    """Run what every free phone has next."""
    farm.clock.advance(5)
    for assignment in host.exchange().assignments:
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)


def full_counts(farm: FarmRig, running: RunningMatrices, *matrix_ids: MatrixId) -> int:
    """How many matrices a look counts in full; it must find what a first look does."""
    with sent_to(farm.database.engine) as sent:
        found = farm.read(running.find, matrix_ids)
    assert found == fresh(farm, matrix_ids)
    return sum("coalesce" in str(statement).lower() for statement, _ in sent)


def fresh(farm: FarmRig, matrix_ids: Sequence[MatrixId]) -> dict[MatrixId, RunningJobs]:
    return farm.read(RunningMatrices().find, matrix_ids)


def test_nothing_is_asked_of_no_matrix(farm: FarmRig) -> None:
    with sent_to(farm.database.engine) as sent:
        assert farm.read(RunningMatrices().find, []) == {}
    assert not [statement for statement, _ in sent if "FROM" in str(statement)]


def test_a_reader_of_an_older_snapshot_counts_for_itself_and_keeps_what_is_newer(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id, running = farm.submit(), RunningMatrices()

    def look(connection: Connection) -> None:
        before = RunningMatrices().find(connection, [matrix_id])
        one_round(farm, host)
        assert full_counts(farm, running, matrix_id) == 1
        assert farm.read(running.find, [matrix_id]) != before
        assert running.find(connection, [matrix_id]) == before
        assert full_counts(farm, running, matrix_id) == 0

    farm.read(look)


def test_all_jobs_are_counted_again_after_some_time(farm: FarmRig, host: HostRig) -> None:
    matrix_id, now_s = farm.submit(), [0.0]
    running = RunningMatrices(monotonic_s=lambda: now_s[0])
    assert full_counts(farm, running, matrix_id) == 1
    now_s[0] = MAX_AGE_S
    one_round(farm, host)
    assert full_counts(farm, running, matrix_id) == 0
    now_s[0] = MAX_AGE_S + 1
    assert full_counts(farm, running, matrix_id) == 1
    assert full_counts(farm, running, matrix_id) == 0


def test_all_jobs_are_counted_again_after_a_quarter_as_many_ends(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(), RunningMatrices(most_ends=0)
    assert farm.read(running.find, [matrix_id])[matrix_id].tally().total == 20
    for _ in range(2):
        one_round(farm, host)
    assert full_counts(farm, running, matrix_id) == 0
    for _ in range(3):
        one_round(farm, host)
    assert full_counts(farm, running, matrix_id) == 1


def test_other_events_than_ends_do_not_count(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(), RunningMatrices(most_ends=5)
    farm.read(running.find, [matrix_id])
    before = farm.rows("SELECT count(*) AS n FROM events")[0]["n"]
    for _ in range(2):
        one_round(farm, host)
    assert farm.rows("SELECT count(*) AS n FROM events")[0]["n"] - before > 5
    assert full_counts(farm, running, matrix_id) == 0


def test_a_matrix_looked_at_less_often_is_counted_again_where_a_list_shares_its_ends(
    farm: FarmRig, host: HostRig
) -> None:
    often, seldom = farm.submit(), farm.submit()
    running = RunningMatrices(most_ends=0)
    assert full_counts(farm, running, often, seldom) == 2
    for _ in range(2):
        one_round(farm, host)
    assert full_counts(farm, running, often) == 0
    one_round(farm, host)
    assert full_counts(farm, running, often, seldom) == 1


def test_the_matrices_used_least_recently_are_forgotten_first(farm: FarmRig, host: HostRig) -> None:
    first, second, third = (farm.submit(rounds=1) for _ in range(3))
    running = RunningMatrices(most_devices=4)
    assert full_counts(farm, running, first) == full_counts(farm, running, second) == 1
    assert full_counts(farm, running, first) == 0
    assert full_counts(farm, running, third) == 1
    assert full_counts(farm, running, first) == 0
    assert full_counts(farm, running, second) == 1


def test_a_matrix_with_more_devices_than_are_remembered_is_remembered_alone(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id, running = farm.submit(), RunningMatrices(most_devices=1)
    assert full_counts(farm, running, matrix_id) == 1
    assert full_counts(farm, running, matrix_id) == 0


def test_a_finished_matrix_is_forgotten(farm: FarmRig, host: HostRig) -> None:
    matrix_id, counted = farm.submit(rounds=1), CountedMatrices()
    farm.read(list_matrix_lines, counted, limit=9)
    assert full_counts(farm, counted.running, matrix_id) == 0
    host.run()
    assert full_counts(farm, counted.running, matrix_id) == 0
    farm.read(list_matrix_lines, counted, limit=9)
    assert full_counts(farm, counted.running, matrix_id) == 1


def test_jobs_that_are_queued_again_or_lost_are_counted_as_queued(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(), RunningMatrices()
    farm.read(running.find, [matrix_id])
    one, other = host.exchange().assignments
    assert full_counts(farm, running, matrix_id) == 0
    assert farm.read(running.find, [matrix_id])[matrix_id].queued == 18
    host.report(one.attempt_id, device_trouble(one))
    assert full_counts(farm, running, matrix_id) == 0
    host.exchange([phase(other, AttemptState.MEASURING)])
    for seconds in (61, 301):
        farm.clock.advance(seconds)
        farm.reap()
    assert {"state": "lost"} in farm.rows("SELECT state FROM attempts")
    assert full_counts(farm, running, matrix_id) == 0
    assert farm.read(running.find, [matrix_id])[matrix_id].queued == 20
    host.report(other.attempt_id, good_evidence(other))
    assert full_counts(farm, running, matrix_id) == 0
    assert farm.read(running.find, [matrix_id])[matrix_id].tally().finished == 1


def test_threads_that_ask_for_a_matrix_at_once_count_it_once(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(), RunningMatrices()
    at_once = threading.Barrier(4, timeout=60)
    found: list[RunningJobs] = []

    def look(connection: Connection) -> None:
        connection.execute(sa.text("SELECT count(*) FROM jobs")).scalar()
        at_once.wait()
        found.append(running.find(connection, [matrix_id])[matrix_id])

    with sent_to(farm.database.engine) as sent:
        threads = [threading.Thread(target=farm.read, args=(look,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [fresh(farm, [matrix_id])[matrix_id]] * 4
    assert sum("coalesce" in str(statement).lower() for statement, _ in sent) == 1


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_an_end_that_a_writer_without_the_lock_commits_late_is_counted(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(), RunningMatrices()
    farm.read(running.find, [matrix_id])
    late = farm.write(lambda c: c.execute(sa.text("SELECT nextval('events_event_id_seq')")).scalar_one())
    one_round(farm, host)
    assert full_counts(farm, running, matrix_id) == 0
    one_round(farm, host)

    def renumber(connection: Connection, before: int, after: int) -> None:
        update = sa.text("UPDATE events SET event_id = :after WHERE event_id = :before")
        assert connection.execute(update, {"before": before, "after": after}).rowcount == 1

    (end,) = farm.rows("SELECT max(event_id) AS event_id FROM events WHERE kind = 'job_finished'")
    farm.write(renumber, end["event_id"], late)
    assert full_counts(farm, running, matrix_id) == 1
    assert full_counts(farm, running, matrix_id) == 0
    farm.write(renumber, late, end["event_id"])
