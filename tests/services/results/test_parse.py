"""Reports are parsed before the transactions that settle them, in the order in which they came."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import NoneType

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.api.state.report_parser_pool import ReportParserPool
from farm.core.errors import FarmBusy, FarmError, InvalidInput
from farm.core.results.settle.report import IncomingReport, ParsedReport, ReportAnswer, ReportReading
from farm.core.runs.measurement import Outcome
from farm.services.results.settle import settle_reports
from farm.wire.agents.protocol import Assignment
from tests.services.results.settle.test_settle_batch import evidence_of, hosted
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, report_body


def incoming(host: HostRig, assignment: Assignment, body: bytes) -> IncomingReport:
    return IncomingReport(
        host_id=host.host_id, attempt_id=assignment.attempt_id, body=body, at=host.farm.clock.now()
    )


def came(host: HostRig, kind: str, assignment: Assignment) -> IncomingReport:
    return incoming(host, assignment, report_body(evidence_of(kind, assignment)))


def parsed_under_the_lock(farm: FarmRig, *reports: IncomingReport) -> list[ParsedReport]:
    """Parse reports while somebody else's transaction keeps every writer out."""

    def transaction(connection: Connection) -> list[ParsedReport]:
        return asyncio.run(ReportParserPool(farm.database).parse(reports))

    return farm.write(transaction)


def settled(farm: FarmRig, reports: Sequence[ParsedReport]) -> list[ReportAnswer | FarmError]:
    return farm.write(settle_reports, reports)


@pytest.mark.invariant("I17")
def test_reports_are_parsed_without_the_write_lock_and_settled_in_their_order(farm: FarmRig) -> None:
    kinds = ("good", "crash", "noisy", "device")
    host = hosted(farm, len(kinds))
    given = host.exchange().assignments
    parsed = parsed_under_the_lock(
        farm, *(came(host, kind, each) for kind, each in zip(kinds, given, strict=True))
    )
    assert [each.incoming.attempt_id for each in parsed] == [each.attempt_id for each in given]
    assert all(isinstance(each.reading, ReportReading) for each in parsed)
    answers = settled(farm, parsed)
    assert [isinstance(answer, ReportAnswer) and answer.outcome for answer in answers] == [
        Outcome.SUCCEEDED,
        Outcome.FAILED,
        Outcome.SUCCEEDED,
        Outcome.INCONCLUSIVE,
    ]


def test_the_transaction_takes_a_report_as_it_was_parsed(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    (given,) = host.exchange().assignments
    (good,) = parsed_under_the_lock(farm, came(host, "good", given))
    (crash,) = parsed_under_the_lock(farm, came(host, "crash", given))
    (answer,) = settled(farm, [replace(good, reading=crash.reading)])
    assert isinstance(answer, ReportAnswer)
    assert answer.outcome is Outcome.FAILED


def test_only_what_will_be_settled_is_parsed(farm: FarmRig) -> None:
    host, stranger = hosted(farm, 1), farm.host("bench-2")
    (given,) = host.exchange().assignments
    own = came(host, "good", given)
    theirs = replace(own, host_id=stranger.host_id)
    malformed = replace(own, body=b"{")
    parsed = parsed_under_the_lock(farm, theirs, malformed, own)
    assert [type(each.reading) for each in parsed] == [NoneType, InvalidInput, ReportReading]
    (refused,) = settled(farm, parsed_under_the_lock(farm, malformed))
    assert isinstance(refused, InvalidInput)
    host.report_bytes(given.attempt_id, own.body)
    (again,) = parsed_under_the_lock(farm, own)
    assert again.reading is None


def test_a_report_that_qualifies_for_parsing_only_since_it_was_read_is_asked_for_again(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    (given,) = host.exchange().assignments
    (parsed,) = parsed_under_the_lock(farm, came(host, "good", given))
    (answer,) = settled(farm, [replace(parsed, reading=None)])
    assert isinstance(answer, FarmBusy)
    (answer,) = settled(farm, [parsed])
    assert isinstance(answer, ReportAnswer)


def test_calls_that_wait_are_parsed_together_and_each_gets_its_own(farm: FarmRig) -> None:
    host = hosted(farm, 8)
    reports = [came(host, "good", each) for each in host.exchange().assignments]

    async def parse_all() -> list[list[ParsedReport]]:
        pool = ReportParserPool(farm.database)
        return await asyncio.gather(*(pool.parse(reports[n : n + 2]) for n in range(0, 8, 2)))

    with sent_to(farm.database.engine) as sent:
        parsed = asyncio.run(parse_all())
    assert [each.incoming for call in parsed for each in call] == reports
    # The first begins with what there is; the others wait, and share the second.
    assert sum("JOIN matrices" in sql for sql, _ in sent) == 2


def test_a_program_is_read_once_for_all_cells_that_run_it(farm: FarmRig) -> None:
    host = hosted(farm, 2)
    reports = [came(host, "good", each) for each in host.exchange().assignments]

    async def parse_in_turn() -> list[ParsedReport]:
        pool = ReportParserPool(farm.database)
        return [parsed for report in reports for parsed in await pool.parse([report])]

    with sent_to(farm.database.engine) as sent:
        parsed = asyncio.run(parse_in_turn())
    assert all(isinstance(each.reading, ReportReading) for each in parsed)
    assert sum("program_files" in sql for sql, _ in sent) == 1
    assert sum("JOIN matrices" in sql for sql, _ in sent) == 2, "each cell is read"


def test_a_row_that_cannot_be_read_fails_the_call_with_its_report_alone(farm: FarmRig) -> None:
    host = hosted(farm, 6)
    reports = [came(host, "good", each) for each in host.exchange().assignments]
    spoil = sa.text("UPDATE attempts SET plan = '{}' WHERE attempt_id = :id")
    farm.write(lambda connection: connection.execute(spoil, {"id": reports[4].attempt_id}))

    async def parse_all() -> list[list[ParsedReport] | BaseException]:
        pool = ReportParserPool(farm.database)
        return await asyncio.gather(*(pool.parse([report]) for report in reports), return_exceptions=True)

    answers = asyncio.run(parse_all())
    assert [isinstance(answer, list) for answer in answers] == [True, True, True, True, False, True]


def test_what_waits_to_be_parsed_has_a_bound(farm: FarmRig) -> None:
    host = hosted(farm, 2)
    first, second = (came(host, "good", each) for each in host.exchange().assignments)

    async def parse_both() -> list[list[ParsedReport] | BaseException]:
        pool = ReportParserPool(farm.database, max_pending_bytes=len(first.body))
        both = await asyncio.gather(pool.parse([first]), pool.parse([second]), return_exceptions=True)
        return [*both, await pool.parse([second])]

    alone, turned_away, again = asyncio.run(parse_both())
    assert isinstance(alone, list)
    assert isinstance(turned_away, FarmBusy)
    assert isinstance(again, list)
