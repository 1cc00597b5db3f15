"""Reports whose parsing may take long are parsed in processes of their own, each within a budget."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing, closing
from dataclasses import replace

import pytest

from farm.api.state.parser_processes import ParserProcesses
from farm.api.state.report_parser_pool import ReportParserPool
from farm.core.base.ids import AttemptId
from farm.core.jobs.job import JobState
from farm.core.results.reparse import ReparseKind
from farm.core.results.settle.report import IncomingReport, ParsedReport, ReportReading
from farm.core.runs.measurement import Outcome
from farm.database.transaction import bind_tx
from farm.services.results.parse import (
    UNPARSED,
    JobContexts,
    ReportSubject,
    parse,
    parse_cheap,
    report_subjects,
)
from farm.services.results.reparse import apply_changes, compare_readings, stale_reports
from farm.services.results.settle import settle_reports
from farm.store.results.reparse import ReparseSelection
from farm.wire.agents.protocol import Assignment
from tests.services.results.settle.test_settle_batch import evidence_of, hosted
from tests.services.results.test_parse import came, incoming
from tests.support.farm.service_fixture import FarmRig, HostRig, report_body

#: Of a match, RE2 looks for a `z` up to the end of the output, where there is none.
LOOKS_AHEAD = {"pattern": r"(\d+)(?:[^z]*z)?", "unit": "ms"}
COSTLY = "1 " * 200_000


@pytest.fixture(scope="module")
def processes() -> Iterator[ParserProcesses]:
    processes = ParserProcesses(cpu_s=1, memory_bytes=512 * 1024 * 1024)
    yield processes
    processes.close()


def subject_of(farm: FarmRig, report: IncomingReport) -> ReportSubject:
    (subject,) = farm.read(report_subjects, [report], JobContexts())
    assert subject is not None
    return subject


@pytest.fixture
def given(farm: FarmRig) -> tuple[HostRig, Assignment]:
    """A run of a phone, which has not ended yet."""
    host = hosted(farm, 1)
    (assignment,) = host.exchange().assignments
    return host, assignment


def costly(farm: FarmRig, host: HostRig, assignment: Assignment) -> tuple[IncomingReport, ReportSubject]:
    """A report for which a user's pattern takes minutes."""
    evidence = replace(evidence_of("good", assignment), stdout=COSTLY)
    report = incoming(host, assignment, report_body(evidence))
    subject = subject_of(farm, report)
    assert subject.work is not None
    program = replace(subject.work.program, definition={"name": "infer", "samples": LOOKS_AHEAD})
    return report, replace(subject, work=replace(subject.work, program=program))


def reading_of(parsed: ParsedReport) -> ReportReading:
    assert isinstance(parsed.reading, ReportReading)
    return parsed.reading


def test_a_process_reads_in_a_report_what_the_farm_would(farm: FarmRig, processes: ParserProcesses) -> None:
    kinds = ("good", "crash", "noisy", "device")
    host = hosted(farm, len(kinds))
    reports = [came(host, *each) for each in zip(kinds, host.exchange().assignments, strict=True)]
    malformed = replace(reports[0], body=b"{")
    for report in (*reports, malformed):
        subject = subject_of(farm, report)
        by_process, here = processes.submit(report, subject).result(), parse(report, subject)
        assert repr(by_process) == repr(here)
        assert repr(parse_cheap(report, subject)) == repr(here)


@pytest.mark.long
@pytest.mark.invariant("I4", "I6", "I17")
def test_what_takes_too_long_ends_its_job_and_is_read_by_a_later_reparse(
    farm: FarmRig, given: tuple[HostRig, Assignment], processes: ParserProcesses
) -> None:
    report, subject = costly(farm, *given)
    assert parse_cheap(report, subject) is None
    parsed = processes.submit(report, subject).result()
    farm.write(settle_reports, [parsed])
    job_id = subject.job.job_id
    (attempt,) = farm.rows("SELECT outcome, code, message FROM attempts WHERE job_id = :id", id=job_id)
    assert (attempt["outcome"], attempt["code"]) == (Outcome.FAILED, UNPARSED)
    assert "unparsed: parsing took more than 1 s of CPU time" in attempt["message"]
    assert "farm reparse" in attempt["message"]
    (job,) = farm.rows("SELECT state, outcome FROM jobs WHERE job_id = :id", id=job_id)
    assert (job["state"], job["outcome"]) == (JobState.FINISHED, Outcome.FAILED)

    read = bind_tx(stale_reports, now=farm.clock.now())
    stored = farm.read(read, ReparseSelection(), after=AttemptId(report.attempt_id - 1), limit=9)
    assert [each.body for each in stored.reports] == [report.body]
    again = compare_readings(stored, lambda *_: parsed)
    assert [each.kind for each in again.page.changes] == [ReparseKind.BROKEN]
    good = replace(report, body=report_body(evidence_of("good", given[1])))
    mended = compare_readings(stored, lambda _, subject: parse(good, subject))
    made = farm.write(bind_tx(apply_changes, now=farm.clock.now()), mended.pending)
    assert [each.kind for each in made] == [ReparseKind.READABLE]
    (row,) = farm.rows("SELECT accepted FROM measurements WHERE attempt_id = :id", id=report.attempt_id)
    assert not row["accepted"]


def test_a_report_beyond_the_memory_is_unparsed_and_the_next_one_is_read(
    farm: FarmRig, given: tuple[HostRig, Assignment]
) -> None:
    host, assignment = given
    report = came(host, "good", assignment)
    subject = subject_of(farm, report)
    large = replace(
        report, body=report_body(replace(evidence_of("good", assignment), stdout="1\n" * 4_000_000))
    )
    with closing(ParserProcesses(memory_bytes=24 * 1024 * 1024)) as small:
        refused = reading_of(small.submit(large, subject).result())
        assert refused.failure is not None
        assert refused.failure.message == "unparsed: parsing took more than 24 MiB of memory"
        assert reading_of(small.submit(report, subject).result()).measured is not None
        before = small.process_ids
        assert len(before) == 1
        # One that the machine ends, for a reason of its own, costs no report.
        os.kill(before[0], signal.SIGKILL)
        assert reading_of(small.submit(report, subject).result()).measured is not None
        assert len(small.process_ids) == 1
        assert small.process_ids != before


def test_a_costly_report_delays_no_other_call_and_does_not_fail_it(farm: FarmRig) -> None:
    host = hosted(farm, 2)
    first, second = host.exchange().assignments
    body = report_body(replace(evidence_of("good", first), stdout="x" * 100_000))
    large, small = incoming(host, first, body), came(host, "good", second)

    async def order_of_answers() -> list[str]:
        answered: list[str] = []

        async def ask(name: str, report: IncomingReport) -> None:
            (parsed,) = await pool.parse([report])
            assert isinstance(parsed.reading, ReportReading)
            answered.append(name)

        async with aclosing(ReportParserPool(farm.database)) as pool:
            await asyncio.gather(ask("large", large), ask("small", small))
        return answered

    assert asyncio.run(order_of_answers()) == ["small", "large"]


PARENT = """
import sys
from farm.api.state.parser_processes import ParserProcesses
processes = ParserProcesses()
process = processes._take()
print(process.process_id, flush=True)
sys.stdin.read()
"""


def test_a_process_ends_when_the_farm_is_killed() -> None:
    farm = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert farm.stdout is not None
    assert int(farm.stdout.readline()) > 0
    farm.kill()
    # Its stderr, which the process has too, ends with the last of the two.
    farm.communicate(timeout=60)
