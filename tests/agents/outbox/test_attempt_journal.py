"""What survives the agent."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.outbox.attempt_journal import AttemptJournal, new_journal_record
from farm.core.base.ids import AttemptId, Digest
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import PlanFile, RunPlan
from tests.support.agents.factories import assignment, condition, entry

PLAN = RunPlan(
    harness="test",
    backend="cpu",
    settings={"iter": 3, "fast": True, "name": "x", "share": 0.5},
    files=(PlanFile(name="model", digest=Digest("a" * 64), size_bytes=3),),
    argv=("${file_model}", "--work", "${work}"),
    env={"A": "b"},
    timeout_s=5.0,
)


def test_an_attempt_comes_back_as_it_was_written(tmp_path: Path) -> None:
    draft = Evidence(fence=1, argv=("true",), before=condition(), waited_s=2.5)
    written = entry(plan=PLAN, phase=AttemptState.MEASURING, draft=draft)
    AttemptJournal(tmp_path).write(written)
    assert AttemptJournal(tmp_path).records() == [written]


def test_the_last_phase_counts(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    journal.write(entry(phase=AttemptState.PREPARING))
    journal.write(entry(phase=AttemptState.MEASURING))
    assert [each.phase for each in journal.records()] == [AttemptState.MEASURING]


@pytest.mark.fault(23, 24)
def test_a_crash_before_the_rename_leaves_the_phase_before(tmp_path: Path) -> None:
    AttemptJournal(tmp_path).write(entry(phase=AttemptState.PREPARING))
    (tmp_path / "1.json.tmp").write_bytes(b'{"attempt_id": 1, "phase": "meas')
    assert [each.phase for each in AttemptJournal(tmp_path).records()] == [AttemptState.PREPARING]


def test_attempts_come_in_the_order_of_their_fences(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    for attempt_id in (12, 9, 100):
        journal.write(entry(attempt_id))
    assert [each.fence for each in journal.records()] == [9, 12, 100]


def test_an_entry_that_cannot_be_read_is_put_aside_and_holds_up_no_other(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    journal.write(entry(1))
    (tmp_path / "2.json").write_text("{}")
    with capture_logs() as logs:
        assert [each.attempt_id for each in journal.records()] == [1]
    assert [log["event"] for log in logs] == ["journal_record_unreadable"]
    assert (tmp_path / "2.unreadable").exists()


def test_a_removed_attempt_is_gone(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    journal.write(entry(1))
    journal.remove(AttemptId(1))
    assert journal.records() == []


def test_a_fresh_attempt_has_done_nothing_yet() -> None:
    fresh = new_journal_record(assignment(4), PLAN)
    assert fresh.phase is AttemptState.CLAIMED
    assert fresh.draft == Evidence(fence=4)


def test_a_folder_in_the_place_of_an_entry_holds_up_no_other(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    journal.write(entry(1))
    (tmp_path / "2.json").mkdir()
    (tmp_path / "3.json.tmp").mkdir()
    with capture_logs() as logs:
        assert [each.attempt_id for each in AttemptJournal(tmp_path).records()] == [1]
    assert [log["event"] for log in logs] == ["journal_record_unreadable"]
    assert (tmp_path / "2.unreadable").is_dir()


@pytest.mark.invariant("I12")
def test_an_entry_with_a_changed_digit_is_not_believed(tmp_path: Path) -> None:
    journal = AttemptJournal(tmp_path)
    journal.write(entry(1, draft=Evidence(fence=1, waited_s=2.5)))
    path = tmp_path / "1.json"
    path.write_bytes(path.read_bytes().replace(b"2.5", b"3.5"))
    assert journal.records() == []
