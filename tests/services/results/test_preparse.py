"""Large reports are read before the transactions that settle them, and mean what they would have meant."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from farm.api.agents.report_parser_pool import ReportParserPool
from farm.core.errors import FarmError, InvalidInput
from farm.core.runs.measurement import Outcome
from farm.services.results.evaluation import ReceivedReport
from farm.services.results.preparse import LARGE_BYTES
from farm.services.results.settle import settle_batch
from farm.wire.agents.protocol import Assignment, ReportAnswer
from tests.services.results.test_settle_batch import alike, everything, evidence_of, hosted
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig, report_body

_CHATTER = "11-22 08:14:30.123  1234  5678 I Vendor  : a step was done, and another\n"


def large(kind: str, assignment: Assignment) -> bytes:
    """A report with a driver's chatter before what the tool says."""
    evidence = evidence_of(kind, assignment)
    chatter = _CHATTER * (LARGE_BYTES // len(_CHATTER) + 1)
    return report_body(replace(evidence, stdout=chatter + evidence.stdout))


def arrived(host: HostRig, assignment: Assignment, body: bytes) -> ReceivedReport:
    return ReceivedReport(
        host_id=host.host_id, attempt_id=assignment.attempt_id, body=body, at=host.farm.clock.now()
    )


def read_under_the_lock(farm: FarmRig, report: ReceivedReport, **limits: int) -> ReceivedReport:
    """Read a report while somebody else's transaction keeps every writer out."""

    def transaction(connection: Connection) -> ReceivedReport:
        return asyncio.run(ReportParserPool(farm.database, **limits).read(report))

    return farm.write(transaction)


def settled(farm: FarmRig, reports: Sequence[ReceivedReport]) -> list[ReportAnswer | FarmError]:
    return farm.write(settle_batch, reports)


@pytest.mark.invariant("I17")
def test_what_is_read_ahead_leaves_the_rows_that_it_would_have_left(farm: FarmRig, tmp_path: Path) -> None:
    folder = tmp_path / "read-in-the-transaction"
    folder.mkdir()
    kinds = ("good", "crash", "noisy", "device")
    with checked_rig(folder) as other:
        ahead, behind = hosted(farm, len(kinds)), hosted(other, len(kinds))
        given = ahead.exchange().assignments
        assert behind.exchange().assignments == given
        bodies = [large(kind, each) for kind, each in zip(kinds, given, strict=True)]
        came = [arrived(ahead, each, body) for each, body in zip(given, bodies, strict=True)]
        read = [read_under_the_lock(farm, each) for each in came]
        assert all(each.read is not None for each in read)
        same = [arrived(behind, each, body) for each, body in zip(given, bodies, strict=True)]
        assert settled(farm, read) == settled(other, same)
        assert alike(everything(farm)) == alike(everything(other))


def test_the_transaction_takes_a_report_as_it_was_read(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    (given,) = host.exchange().assignments
    read = read_under_the_lock(farm, arrived(host, given, large("good", given)))
    crash = read_under_the_lock(farm, arrived(host, given, large("crash", given)))
    (answer,) = settled(farm, [replace(read, read=crash.read)])
    assert isinstance(answer, ReportAnswer)
    assert answer.outcome is Outcome.FAILED


def test_only_what_is_large_and_will_be_read_is_read_ahead(farm: FarmRig) -> None:
    host, stranger = hosted(farm, 2), farm.host("bench-2")
    first, second = host.exchange().assignments
    body = large("good", first)
    came = arrived(host, first, body)
    small = arrived(host, second, report_body(evidence_of("good", second)))
    theirs = replace(came, host_id=stranger.host_id)
    malformed = replace(came, body=b"{" * LARGE_BYTES)
    for each in (small, theirs, malformed):
        assert read_under_the_lock(farm, each) is each
    assert read_under_the_lock(farm, came, max_pending_bytes=len(body) - 1) is came
    (refused,) = settled(farm, [malformed])
    assert isinstance(refused, InvalidInput)
    host.report_bytes(first.attempt_id, body)
    assert read_under_the_lock(farm, came) is came
