"""Evidence that is read again by a newer adapter: what changes, what stays, and that nothing is lost."""

import zlib
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, MatrixId
from farm.core.results.reparse import ReparseChange, ReparseKind
from farm.core.runs.evidence import Evidence
from farm.database.transaction import Tx, bind_tx
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch
from farm.services.results.cells import list_results
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.history.retractions import apply_retraction
from farm.services.results.interchange.energy_import import import_energy
from farm.services.results.parse import parse
from farm.services.results.reparse import ReparseScan, apply_changes, compare_readings, stale_reports
from farm.store.results.reparse import ReparseSelection
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.history import RetractRequest
from farm.wire.documents.results.results import EnergyImport
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    report_body,
    torch_output,
)

NEWER = SpeedBenchmarkTorch().parser_version
ALL = ReparseSelection()


@pytest.fixture
def matrix(farm: FarmRig, host: HostRig) -> MatrixId:
    return farm.submit(rounds=1)


def look(
    farm: FarmRig, selection: ReparseSelection = ALL, *, after: int = 0, limit: int = 100
) -> ReparseScan:
    now = farm.clock.now()
    read = bind_tx(stale_reports, now=now)
    return compare_readings(farm.read(read, selection, after=AttemptId(after), limit=limit), parse)


def reparse(farm: FarmRig, selection: ReparseSelection = ALL) -> list[ReparseChange]:
    found = look(farm, selection).pending
    return farm.write(bind_tx(apply_changes, now=farm.clock.now(), actor="user:ann"), found)


def change(farm: FarmRig, sql: str, **values: Any) -> None:
    """What an older adapter would have left, or what a rule of retention would have done."""

    def changed(connection: Connection) -> None:
        connection.execute(sa.text(sql), values)

    farm.write(changed)


def read_by_an_older_one(farm: FarmRig, values: str = "value_ns = 5e9, mean_ns = 5e9") -> None:
    change(farm, f"UPDATE measurements SET parser_version = {NEWER - 1}, {values}")


def swap_output(farm: FarmRig, attempt_id: int, stdout: str, *, code: int = 0) -> None:
    """Let the stored report be one that the older adapter would have judged otherwise."""
    [row] = farm.rows("SELECT fence FROM attempts WHERE attempt_id = :id", id=attempt_id)
    assignment = Assignment.model_construct(fence=row["fence"])
    body = zlib.compress(report_body(ended(assignment, stdout, code=code)))
    change(farm, "UPDATE evidence SET body = :body WHERE attempt_id = :id", body=body, id=attempt_id)


def failing(assignment: Assignment) -> Evidence:
    good = good_evidence(assignment)
    is_check = assignment.plan is not None and assignment.plan.harness == "device_check"
    return good if is_check else ended(assignment, "no numbers\n")


def measured(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM measurements ORDER BY measurement_id")


def events(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM events WHERE kind = 'job_reparsed' ORDER BY event_id")


def jobs(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM jobs ORDER BY job_id")


def attempts(farm: FarmRig) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM attempts ORDER BY attempt_id")


@pytest.mark.invariant("I4", "I6")
def test_another_reading_counts_in_the_place_of_the_older_one_which_is_kept(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    read_by_an_older_one(farm)
    before, jobs_before, attempts_before = measured(farm), jobs(farm), attempts(farm)
    farm.clock.advance(60)
    done = reparse(farm)
    assert {each.kind for each in done} == {ReparseKind.CHANGED}
    old, new = measured(farm)[: len(before)], measured(farm)[len(before) :]
    assert [row["attempt_id"] for row in new] == [row["attempt_id"] for row in old]
    for left, came, was in zip(old, new, before, strict=True):
        assert (left["value_ns"], left["parser_version"]) == (5e9, NEWER - 1)
        assert (bool(left["accepted"]), left["superseded_at"] is None) == (False, False)
        assert (came["value_ns"], came["parser_version"]) == (1e6, NEWER)
        assert (bool(came["accepted"]), came["superseded_at"]) == (True, None)
        assert came["measured_at"] == was["measured_at"]
        assert came["series_id"] == was["series_id"]
    assert (jobs(farm), attempts(farm)) == (jobs_before, attempts_before)


def test_each_change_has_one_event_with_who_versions_and_what(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    read_by_an_older_one(farm)
    done = reparse(farm)
    told = events(farm)
    assert sorted(row["subject_id"] for row in told) == sorted(str(each.job_id) for each in done)
    for row in told:
        assert (row["actor"], row["subject"]) == ("user:ann", "job")
        assert f"parser {NEWER - 1} to {NEWER} of speed_benchmark_torch" in row["cause"]
        assert "5.00 s (samples, valid, cpu)" in row["cause"]
        assert "1.00 ms" in row["cause"]


def test_doing_it_again_changes_nothing(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm)
    assert reparse(farm)
    rows, told = measured(farm), events(farm)
    assert reparse(farm) == []
    assert look(farm).page.up_to_date == len(jobs_of(farm, matrix))
    assert (measured(farm), events(farm)) == (rows, told)


def jobs_of(farm: FarmRig, matrix: MatrixId) -> list[dict[str, Any]]:
    return farm.rows("SELECT * FROM jobs WHERE matrix_id = :id", id=matrix)


def test_what_is_read_alike_stays_as_it_is(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm, "accepted = accepted")
    rows = measured(farm)
    looked = look(farm)
    assert (looked.page.examined, looked.pending) == (len(rows), ())
    assert (measured(farm), events(farm)) == (rows, [])


def test_looking_changes_nothing(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm)
    rows = measured(farm)
    assert len(look(farm).pending) == len(rows)
    assert (measured(farm), events(farm)) == (rows, [])


def test_only_what_an_older_version_read_is_looked_at(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    change(farm, "UPDATE measurements SET value_ns = 5e9")
    looked = look(farm)
    assert (looked.page.examined, looked.pending) == (0, ())


@pytest.mark.parametrize("column", ["accelerator = 'gpu'", "quality = 'noisy', quality_reasons = '[\"x\"]'"])
def test_where_it_ran_and_how_good_it_is_are_read_again_too(
    farm: FarmRig, host: HostRig, matrix: MatrixId, column: str
) -> None:
    host.run()
    read_by_an_older_one(farm, column)
    assert {each.kind for each in reparse(farm)} == {ReparseKind.CHANGED}
    accepted = [row for row in measured(farm) if row["accepted"]]
    assert {(row["accelerator"], row["quality"]) for row in accepted} == {("cpu", "valid")}


@pytest.mark.invariant("I5", "I6")
def test_a_time_that_cannot_be_read_any_more_is_withdrawn_and_the_job_stays_as_it_ended(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    read_by_an_older_one(farm, "accepted = accepted")
    first = measured(farm)[0]
    swap_output(farm, first["attempt_id"], "no numbers\n")
    jobs_before = jobs(farm)
    [done] = reparse(farm)
    assert (done.kind, done.attempt_id) == (ReparseKind.WITHDRAWN, first["attempt_id"])
    [counts] = [row for row in measured(farm) if row["attempt_id"] == first["attempt_id"] and row["accepted"]]
    assert (counts["quality"], counts["value_ns"], counts["parser_version"]) == (
        "withdrawn",
        first["value_ns"],
        NEWER,
    )
    assert "cannot be read" in str(counts["quality_reasons"])
    assert jobs(farm) == jobs_before
    assert reparse(farm) == []


def test_a_withdrawn_time_enters_no_comparison(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm, "accepted = accepted")
    for row in measured(farm):
        swap_output(farm, row["attempt_id"], "no numbers\n")
    reparse(farm)
    assert {result.counted for result in farm.read(list_results, matrix)} == {"withdrawn"}
    assert all(each.speedup is None for each in farm.speedups(matrix))


@pytest.mark.invariant("I5", "I6")
def test_a_time_that_can_be_read_now_is_kept_and_counts_for_nothing(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run(failing)
    assert measured(farm) == []
    ids = [row["attempt_id"] for row in farm.rows("SELECT attempt_id FROM jobs WHERE kind = 'benchmark'")]
    for attempt_id in ids:
        swap_output(farm, attempt_id, torch_output([2000.0] * 5))
    jobs_before = jobs(farm)
    done = reparse(farm)
    assert {each.kind for each in done} == {ReparseKind.READABLE}
    assert {bool(row["accepted"]) for row in measured(farm)} == {False}
    assert {row["value_ns"] for row in measured(farm)} == {2e6}
    assert jobs(farm) == jobs_before
    assert {result.time for result in farm.read(list_results, matrix)} == {None}
    assert len(events(farm)) == len(ids)
    assert reparse(farm) == []


def test_an_attempt_with_two_readings_shows_the_one_that_counts(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    read_by_an_older_one(farm)
    reparse(farm)
    view = farm.read(attempt_view, measured(farm)[0]["attempt_id"])
    assert view.reading is not None
    assert (view.reading.value_ns, view.reading.parser_version) == (1e6, NEWER)


def test_what_failed_and_still_fails_is_no_news(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run(failing)
    looked = look(farm)
    assert looked.page.examined == len(jobs_of(farm, matrix))
    assert looked.pending == ()


def test_what_ended_without_a_word_of_an_adapter_is_not_looked_at(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run(
        lambda each: (
            device_trouble(each) if each.plan and each.plan.settings.get("iter") else good_evidence(each)
        )
    )
    assert {row["outcome"] for row in jobs_of(farm, matrix)} <= {"inconclusive", None}
    assert look(farm).page.examined == 0


def test_what_lost_its_evidence_is_told_and_stays(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm)
    now = int(farm.clock.now().timestamp() * 1e6)
    change(farm, "UPDATE evidence SET body = NULL, expired_at = :now, expired_by = 'age'", now=now)
    rows = measured(farm)
    looked = look(farm)
    assert (looked.page.examined, looked.page.expired, looked.pending) == (0, len(rows), ())


def test_pieces_come_to_the_same_as_the_whole(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm)
    whole = [each.reparse_change for each in look(farm).pending]
    pieces, after = [], AttemptId(0)
    while True:
        looked = look(farm, after=after, limit=1)
        pieces += farm.write(bind_tx(apply_changes, now=farm.clock.now(), actor="user:ann"), looked.pending)
        if looked.page.next_after is None:
            break
        after = looked.page.next_after
    assert pieces == whole


@pytest.mark.invariant("I4")
def test_two_who_do_it_at_once_do_it_once(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    read_by_an_older_one(farm)
    swap_output(farm, measured(farm)[0]["attempt_id"], "no numbers\n")
    ones, others = look(farm).pending, look(farm).pending
    now = farm.clock.now()
    assert len(farm.write(bind_tx(apply_changes, now=now, actor="user:ann"), ones)) == len(ones)
    rows = measured(farm)
    assert farm.write(bind_tx(apply_changes, now=now, actor="user:bob"), others) == []
    assert measured(farm) == rows
    assert len(events(farm)) == len(ones)


@pytest.mark.invariant("I4")
def test_who_is_stopped_in_a_piece_has_done_none_of_it(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    read_by_an_older_one(farm)
    found = look(farm).pending
    rows = measured(farm)

    def stopped(connection: Connection) -> None:
        apply_changes(Tx(connection, farm.clock.now(), "user:ann"), found)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farm.write(stopped)
    assert (measured(farm), events(farm)) == (rows, [])
    assert len(reparse(farm)) == len(found)


def test_a_selection_leaves_all_others_alone(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    start = farm.clock.now() + timedelta(seconds=30)
    farm.clock.advance(60)
    other = farm.submit(rounds=1, name="other")
    host.run()
    read_by_an_older_one(farm)
    count = len(jobs_of(farm, matrix))
    assert look(farm, ReparseSelection(matrix_id=other)).page.examined == len(jobs_of(farm, other))
    assert look(farm, ReparseSelection(since=start)).page.examined == len(jobs_of(farm, other))
    assert look(farm, ReparseSelection(harness="benchmark_model")).page.examined == 0
    assert (
        look(farm, ReparseSelection(harness="speed_benchmark_torch", matrix_id=matrix)).page.examined == count
    )


def test_imported_energy_stays_with_the_reading_that_counts(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    attempt_id = AttemptId(measured(farm)[0]["attempt_id"])
    given = EnergyImport(joules=4.0, boundary="supply of the phone", instrument="power monitor")
    farm.write(bind_tx(import_energy, now=farm.clock.now(), actor="user:ann"), attempt_id, given)
    before = farm.read(attempt_view, attempt_id).reading
    read_by_an_older_one(farm)
    reparse(farm)
    after = farm.read(attempt_view, attempt_id).reading
    assert before is not None
    assert after is not None
    assert [metric for metric in before.metrics if "energy" in metric.name]
    assert after.metrics == before.metrics
    assert after.energy == before.energy


def test_a_retraction_outlives_a_newer_reading(farm: FarmRig, host: HostRig, matrix: MatrixId) -> None:
    host.run()
    change(farm, "UPDATE measurements SET parser_version = 0, value_ns = 7.0")
    service = bind_tx(apply_retraction, now=farm.clock.now(), actor="user:ann")
    farm.write(service, RetractRequest(matrix_id=matrix, reason="wrong file"))
    changes = reparse(farm)
    assert {each.kind for each in changes} == {ReparseKind.CHANGED}
    assert all("quality" not in each.what for each in changes)
    rows = farm.rows("SELECT quality, retracted_by, parser_version FROM measurements WHERE accepted")
    assert {(row["quality"], row["retracted_by"], row["parser_version"]) for row in rows} == {
        ("withdrawn", "user:ann", NEWER)
    }
    assert reparse(farm) == []
    farm.write(service, RetractRequest(matrix_id=matrix, reason="right file", undo=True))
    rows = farm.rows("SELECT quality, value_ns FROM measurements WHERE accepted")
    assert {row["quality"] for row in rows} == {"valid"}
    assert all(row["value_ns"] > 7.0 for row in rows)
