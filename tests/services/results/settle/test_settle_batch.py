"""Reports that are settled in one transaction leave what they would have left one after the other."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from farm.core.base.ids import AttemptId
from farm.core.errors import FarmBusy, FarmError, Forbidden, InvalidInput, NotFound, ReportConflict
from farm.core.jobs.attempt import AttemptEvent, AttemptOutcome
from farm.core.results.settle.effects import EndAttempt, EndJob
from farm.core.results.settle.report import ReportAnswer
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Outcome
from farm.database.transaction import bind_tx
from farm.store.jobs.attempts import find_attempt
from farm.store.jobs.jobs import find_job
from farm.store.results.settle.effects import write
from farm.wire.agents.protocol import Assignment
from tests.support.database.sent_statements import sent_to
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    checked_rig,
    device_trouble,
    ended,
    good_evidence,
    report_body,
    torch_output,
)

_TABLES = ("events", "jobs", "attempts", "evidence", "measurements", "series", "devices")
_SHORT = [1000.0] * 4


def evidence_of(kind: str, assignment: Assignment) -> Evidence:
    """How a run may have ended."""
    match kind:
        case "short":
            return ended(assignment, torch_output(_SHORT))
        case "crash":
            return ended(assignment, "", code=134, stderr="terminate called")
        case "device":
            return device_trouble(assignment)
        case _:
            return good_evidence(assignment)


def hosted(farm: FarmRig, phones: int) -> HostRig:
    """A host with healthy phones, and work for them."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    for number in range(phones):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    farm.submit()
    return host


def everything(farm: FarmRig) -> dict[str, list[dict[str, Any]]]:
    """Every row that settling may touch."""
    return {table: farm.rows(f"SELECT * FROM {table} ORDER BY 1") for table in _TABLES}


def alike(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """As both databases give them; without events of join tokens, whose names are drawn."""
    return {
        table: [
            {name: _alike(value) for name, value in row.items()}
            for row in found
            if row.get("kind") not in ("join_token_created", "join_token_used")
        ]
        for table, found in rows.items()
    }


def _alike(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.fixture
def one_by_one(tmp_path: Path) -> Iterator[FarmRig]:
    """A second farm, where reports come one after the other."""
    folder = tmp_path / "one-by-one"
    folder.mkdir()
    with checked_rig(folder) as rig:
        yield rig


@pytest.mark.invariant("I17", "I20")
@pytest.mark.parametrize(
    "kinds",
    [
        ("good", "good", "good", "good"),
        ("good", "short", "good", "short"),
        ("crash", "good", "good", "crash"),
        ("good", "good", "device", "good"),
        ("device", "device", "device", "good"),
    ],
    ids="-".join,
)
def test_rows_and_events_are_as_if_one_came_after_the_other(
    farm: FarmRig, one_by_one: FarmRig, kinds: Sequence[str]
) -> None:
    together, apart = (hosted(rig, len(kinds)) for rig in (farm, one_by_one))
    for _ in range(3):
        given = together.exchange().assignments
        bodies = [
            (each.attempt_id, report_body(evidence_of(kind, each)))
            for kind, each in zip(kinds, given, strict=False)
        ]
        answers = together.report_together(bodies)
        assert apart.exchange().assignments == given
        assert answers == [apart.report_bytes(*report) for report in bodies]
        for host in (together, apart):
            for each in given:
                host.clean(each)
            host.farm.clock.advance(1)
    assert alike(everything(farm)) == alike(everything(one_by_one))


def claimed(host: HostRig) -> list[tuple[AttemptId, bytes]]:
    """Good reports of what a host is given."""
    return [(each.attempt_id, report_body(good_evidence(each))) for each in host.exchange().assignments]


def counted(answers: Sequence[ReportAnswer | FarmError]) -> list[bool]:
    return [isinstance(answer, ReportAnswer) and answer.counted for answer in answers]


@pytest.mark.invariant("I12", "I19")
def test_a_report_that_is_refused_harms_no_other(farm: FarmRig) -> None:
    host = hosted(farm, 4)
    (one, body), second, third, (four, other) = claimed(host)
    stranger = farm.host("bench-2")
    stale = report_body(Evidence(fence=1))
    bad = [(one, b"{}"), second, (AttemptId(99), b"{}"), third, (four, stale)]
    answers = host.report_together(bad)
    assert [type(answer) for answer in answers] == [
        InvalidInput,
        ReportAnswer,
        NotFound,
        ReportAnswer,
        InvalidInput,
    ]
    (theft,) = stranger.report_together([(four, other)])
    assert isinstance(theft, Forbidden)
    assert counted(host.report_together([(one, body), (four, other)])) == [True, True]


@pytest.mark.invariant("I4")
@pytest.mark.fault(33)
def test_of_two_reports_of_one_attempt_the_first_counts(farm: FarmRig) -> None:
    host = hosted(farm, 2)
    (one, body), second = claimed(host)
    again, other = (one, body), (one, body + b" ")
    answers = host.report_together([(one, body), again, second, other])
    assert counted(answers) == [True, True, True, False]
    assert answers[0] == answers[1]
    assert isinstance(answers[3], ReportConflict)
    assert len(farm.rows("SELECT * FROM measurements")) == 2


@pytest.mark.invariant("I4", "I12")
@pytest.mark.fault(35)
def test_all_sent_again_after_a_lost_answer_are_told_the_same_and_change_nothing(farm: FarmRig) -> None:
    host = hosted(farm, 3)
    reports = claimed(host)
    answers = host.report_together(reports)
    before = everything(farm)
    assert host.report_together(list(reversed(reports))) == list(reversed(answers))
    assert everything(farm) == before


@pytest.mark.invariant("I6", "I16")
@pytest.mark.fault(34)
def test_reports_of_cancelled_jobs_are_kept_beside_others_that_count(farm: FarmRig) -> None:
    host = hosted(farm, 3)
    reports = claimed(host)
    now = farm.clock.now()
    farm.write(bind_tx(cancel_matrix, now=now, actor="user"), 1, device="phone-1")
    assert counted(host.report_together(reports)) == [True, False, True]
    assert farm.rows("SELECT count(*) n FROM evidence WHERE NOT counted") == [{"n": 1}]
    assert farm.rows("SELECT count(*) n FROM measurements") == [{"n": 2}]


@pytest.mark.invariant("I6", "I17")
def test_what_was_moved_in_between_is_not_ended_and_leaves_no_event(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    ((attempt_id, body),) = claimed(host)
    attempt = farm.read(find_attempt, attempt_id)
    assert attempt is not None
    job = farm.read(find_job, attempt.job_id)
    assert job is not None
    host.report_bytes(attempt_id, body)
    before = everything(farm)
    outcome, actor, now = AttemptOutcome(outcome=Outcome.SUCCEEDED), "agent:bench-1", farm.clock.now()
    end_attempt = EndAttempt(
        at=now, attempt=attempt, event=AttemptEvent.SETTLED, outcome=outcome, actor=actor, cause="succeeded"
    )
    end_job = EndJob(at=now, job=job, outcome=outcome, actor=actor)
    for effects in ([end_attempt], [end_job], [end_attempt, end_job]):
        with pytest.raises(FarmBusy):
            farm.write(write, effects)
    assert everything(farm) == before


def test_good_runs_take_the_same_statements_however_many(farm: FarmRig) -> None:
    host = hosted(farm, 8)
    # The series of every cell is made by the first round.
    for _ in range(2):
        host.report_together(claimed_and_cleaned(host))
    given = claimed_and_cleaned(host)
    with sent_to(farm.database.engine) as of_one:
        assert counted(host.report_together(given[:1])) == [True]
    with sent_to(farm.database.engine) as of_seven:
        assert counted(host.report_together(given[1:])) == [True] * 7
    assert len(of_seven) == len(of_one)


def claimed_and_cleaned(host: HostRig) -> list[tuple[AttemptId, bytes]]:
    """As `claimed`, from phones that will be clean by the next exchange."""
    given = host.exchange().assignments
    for each in given:
        host.clean(each)
    return [(each.attempt_id, report_body(good_evidence(each))) for each in given]
