"""Reading of a batch of reports in one transaction, before they are settled in another."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.results.settle.report import IncomingReport, ParsedReport
from farm.services.agents.pair_starts import compare_starts
from farm.services.results.parse import JobContexts, ReportSubject, parse_cheap, report_subjects

#: A report that is parsed, or one that needs a process of its own, with what it is parsed by.
BegunReport = ParsedReport | tuple[IncomingReport, ReportSubject]


def begin_reports(
    connection: Connection, reports: Sequence[IncomingReport], contexts: JobContexts
) -> list[BegunReport]:
    """Parse the reports for which that is quick, and compare their starts with the other sides of pairs."""
    begun: list[BegunReport] = []
    for report, subject in zip(reports, report_subjects(connection, reports, contexts), strict=True):
        parsed = parse_cheap(report, subject)
        if parsed is None:
            assert subject is not None
            begun.append((report, subject))
        else:
            begun.append(parsed)
    compared = iter(compare_starts(connection, [each for each in begun if isinstance(each, ParsedReport)]))
    return [next(compared) if isinstance(each, ParsedReport) else each for each in begun]
