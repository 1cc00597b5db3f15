"""Large reports are read before the transactions that settle them, and mean what they would have meant."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType

import pytest
from sqlalchemy.engine import Connection

from farm.api.state.report_parser_pool import ReportParserPool
from farm.core.errors import FarmBusy, FarmError, InvalidInput
from farm.core.results.settle.report import IncomingReport, ParsedReport, ReportAnswer, ReportReading
from farm.core.runs.measurement import Outcome
from farm.database.transaction import bind_tx
from farm.services.results.preparse import LARGE_BYTES
from farm.services.results.settle import receive_reports
from farm.wire.agents.protocol import Assignment
from tests.services.results.test_settle_batch import alike, everything, evidence_of, hosted
from tests.support.farm.direct_calls import settle
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig, report_body

_CHATTER = "11-22 08:14:30.123  1234  5678 I Vendor  : a step was done, and another\n"


def large(kind: str, assignment: Assignment) -> bytes:
    """A report with a driver's chatter before what the tool says."""
    evidence = evidence_of(kind, assignment)
    chatter = _CHATTER * (LARGE_BYTES // len(_CHATTER) + 1)
    return report_body(replace(evidence, stdout=chatter + evidence.stdout))


def incoming(host: HostRig, assignment: Assignment, body: bytes) -> IncomingReport:
    return IncomingReport(
        host_id=host.host_id, attempt_id=assignment.attempt_id, body=body, at=host.farm.clock.now()
    )


def parsed_under_the_lock(
    farm: FarmRig, *reports: IncomingReport, **limits: int
) -> list[IncomingReport | ParsedReport]:
    """Parse reports while somebody else's transaction keeps every writer out."""

    def transaction(connection: Connection) -> list[IncomingReport | ParsedReport]:
        return asyncio.run(ReportParserPool(farm.database, **limits).parse(reports))

    return farm.write(transaction)


def settled(
    farm: FarmRig, reports: Sequence[IncomingReport | ParsedReport]
) -> list[ReportAnswer | FarmError]:
    return farm.write(receive_reports, reports)


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
        came = [incoming(ahead, each, body) for each, body in zip(given, bodies, strict=True)]
        parsed = parsed_under_the_lock(farm, *came)
        large_ones = [each for each in parsed if isinstance(each, ParsedReport)]
        assert len(large_ones) == len(came)
        assert all(isinstance(each.reading, ReportReading) for each in large_ones)
        answers = settled(farm, parsed)
        same = [incoming(behind, each, body) for each, body in zip(given, bodies, strict=True)]
        one_by_one = [
            other.write(bind_tx(settle, now=each.at), each.host_id, each.attempt_id, each.body)
            for each in same
        ]
        assert answers == one_by_one
        assert alike(everything(farm)) == alike(everything(other))


def test_the_transaction_takes_a_report_as_it_was_read(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    (given,) = host.exchange().assignments
    (good,) = parsed_under_the_lock(farm, incoming(host, given, large("good", given)))
    (crash,) = parsed_under_the_lock(farm, incoming(host, given, large("crash", given)))
    assert isinstance(good, ParsedReport)
    assert isinstance(crash, ParsedReport)
    (answer,) = settled(farm, [replace(good, reading=crash.reading)])
    assert isinstance(answer, ReportAnswer)
    assert answer.outcome is Outcome.FAILED


def test_only_what_will_be_settled_is_read_ahead(farm: FarmRig) -> None:
    host, stranger = hosted(farm, 2), farm.host("bench-2")
    first, second = host.exchange().assignments
    body = large("good", first)
    came = incoming(host, first, body)
    small = incoming(host, second, report_body(evidence_of("good", second)))
    theirs = replace(came, host_id=stranger.host_id)
    malformed = replace(came, body=b"{" * LARGE_BYTES)
    as_it_came, *parsed = parsed_under_the_lock(farm, small, theirs, malformed, came)
    assert as_it_came is small
    readings = [each.reading for each in parsed if isinstance(each, ParsedReport)]
    assert [type(reading) for reading in readings] == [NoneType, InvalidInput, ReportReading]
    (refused,) = settled(farm, parsed_under_the_lock(farm, malformed))
    assert isinstance(refused, InvalidInput)
    host.report_bytes(first.attempt_id, body)
    (again,) = parsed_under_the_lock(farm, came)
    assert isinstance(again, ParsedReport)
    assert again.reading is None


def test_what_waits_to_be_read_has_a_bound(farm: FarmRig) -> None:
    host = hosted(farm, 2)
    first, second = (incoming(host, each, large("good", each)) for each in host.exchange().assignments)

    async def parse_both() -> list[list[IncomingReport | ParsedReport] | BaseException]:
        pool = ReportParserPool(farm.database, max_pending_bytes=len(first.body))
        return await asyncio.gather(pool.parse([first]), pool.parse([second]), return_exceptions=True)

    alone, turned_away = asyncio.run(parse_both())
    assert isinstance(alone, list)
    assert isinstance(turned_away, FarmBusy)
