"""Settle reports: a batch in one transaction, with the same result as one report after the other.

Consecutive successful runs share a few statements; a report with further consequences is decided separately,
after earlier effects are written.
"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.errors import FarmError
from farm.core.results.settle.consequences import may_be_repeated
from farm.core.results.settle.evaluation import evaluate
from farm.core.results.settle.report import ParsedReport, ReportAnswer, ReportReading
from farm.database.notifications import notify_no_other_hosts
from farm.database.transaction import Tx
from farm.services.matrices.lazy_expansion import expand_rounds
from farm.store.matrices.matrices import get_cell
from farm.store.results.settle import effects, report_context


def receive_reports(
    connection: Connection, reports: Sequence[ParsedReport]
) -> list[ReportAnswer | FarmError]:
    """Settle reports in their order; for each its answer or its error, which harms no other.

    The same bytes again get the same answer. A report of an attempt that is no longer its job's current one
    is stored and not counted. The errors are NotFound (no such attempt), Forbidden (the attempt is another
    host's), ReportConflict (another report settled the attempt) and InvalidInput (it is no report, or quotes
    another fencing token).

    A block is repeated with all of its cells: where one may be, its device's rounds so far are queued first.

    Raises:
        FarmBusy: a row changed since it was read; send the reports again.
    """
    for report in reports:
        measured = report.reading.measured if isinstance(report.reading, ReportReading) else None
        if measured is not None and may_be_repeated(measured):
            cell = get_cell(connection, measured.cell_id)
            at = report.incoming.at
            expand_rounds(Tx(connection, at), cell.matrix_id, cell.device_id, rounds=measured.round)
    return settle_batch(connection, reports)


def settle_batch(connection: Connection, reports: Sequence[ParsedReport]) -> list[ReportAnswer | FarmError]:
    """Settle reports whose blocks are queued as a whole, in their order."""
    # A report that is refused, or came before, needs no work.
    notify_no_other_hosts(connection)
    answers: list[ReportAnswer | FarmError] = []
    while rest := reports[len(answers) :]:
        settlements = evaluate(report_context.load(connection, rest), rest)
        effects.write(connection, (effect for settlement in settlements for effect in settlement.effects))
        answers += [settlement.answer for settlement in settlements]
    return answers
