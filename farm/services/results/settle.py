"""Settle reports: a batch in one transaction, with the same result as one report after the other.

Consecutive successful runs share a few statements; a report with further consequences is decided separately,
after earlier effects are written.
"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.errors import FarmError
from farm.core.results.settle.evaluation import evaluate
from farm.core.results.settle.report import ParsedReport, ReportAnswer
from farm.database.notifications import notify_no_other_hosts
from farm.store.results.settle import effects, report_context


def settle_reports(connection: Connection, reports: Sequence[ParsedReport]) -> list[ReportAnswer | FarmError]:
    """Settle reports in their order; return for each its answer, or the error with which it is refused.

    Bytes that came before get the stored answer. A report that no longer counts (`counts`) is kept; if its
    job was cancelled, it also ends its attempt.

    Raises:
        FarmBusy: a row changed since it was read; send the reports again.
    """
    # By default wake no host: only reports that are settled name the hosts to notify.
    notify_no_other_hosts(connection)
    answers: list[ReportAnswer | FarmError] = []
    while rest := reports[len(answers) :]:
        settlements = evaluate(report_context.load(connection, rest), rest)
        effects.write(connection, (effect for settlement in settlements for effect in settlement.effects))
        answers += [settlement.answer for settlement in settlements]
    return answers
