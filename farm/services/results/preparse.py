"""What a large report says, read before the transaction that settles it: nobody else waits for its lines."""

from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.errors import InvalidInput
from farm.services.results.evaluation import ParsedReport, ReceivedReport, parse_evidence, read_evidence
from farm.store.jobs.attempts import Attempt
from farm.store.jobs.context import JobContext, job_contexts
from farm.store.results.report_context import report_contexts

#: What is smaller is read in a few milliseconds.
LARGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseContext:
    """What a report is of. Plan and program, by which it is read, never change."""

    attempt: Attempt
    #: None for a check.
    work: JobContext | None


def find_parse_context(connection: Connection, arrived: ReceivedReport) -> ParseContext | None:
    """What a report is of; None where it will be refused, or came before, and so is not read."""
    standing = report_contexts(connection, {arrived.attempt_id}).get(arrived.attempt_id)
    if standing is None or standing.attempt.host_id != arrived.host_id:
        return None
    if standing.attempt.report_digest is not None:
        return None
    job = standing.job
    return ParseContext(attempt=standing.attempt, work=job_contexts(connection, [job]).get(job.job_id))


def preparse(arrived: ReceivedReport, subject: ParseContext) -> ReceivedReport:
    """The report with what it says; as it came where it is malformed, which its transaction will tell."""
    try:
        evidence = parse_evidence(arrived.body, subject.attempt)
    except InvalidInput:
        return arrived
    reading = read_evidence(subject.work, subject.attempt, evidence)
    return replace(arrived, read=ParsedReport(evidence=evidence, reading=reading))
