"""Several reports in one call: a line of JSON with their attempts and lengths, then their bytes.

The bytes of each are those of a report sent alone, because their digest identifies a report. A farm that
does not know the call answers 404, and gets one report at a time.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, ValidationError

from farm.core.base.ids import AttemptId
from farm.core.errors import InvalidInput
from farm.core.results.settle.report import ReportAnswer
from farm.wire.base import Count, Problem, Wire

#: The number of reports that a farm settles in one transaction.
MAX_REPORTS = 40
_HINT = "a line of JSON that says whose and how long the reports are, then the bytes of each"


class ReportHead(Wire):
    """The attempt and the length of a report."""

    attempt_id: Count
    size_bytes: Count


class ReportHeads(Wire):
    """POST /api/v1/agent/attempts/reports: the first line of the body; the reports follow in its order."""

    reports: Annotated[tuple[ReportHead, ...], Field(min_length=1, max_length=MAX_REPORTS)]


class ReportOutcome(Wire):
    """The answer that a report would have received on its own: exactly one field is set."""

    attempt_id: AttemptId
    answer: ReportAnswer | None = None
    problem: Problem | None = None


class ReportOutcomes(Wire):
    """One for each report, in their order."""

    reports: tuple[ReportOutcome, ...]


def pack_reports(reports: Sequence[tuple[AttemptId, bytes]]) -> bytes:
    """Pack reports into the body of one call."""
    heads = [ReportHead(attempt_id=attempt_id, size_bytes=len(body)) for attempt_id, body in reports]
    first = ReportHeads(reports=tuple(heads)).model_dump_json().encode()
    return b"\n".join([first, b"".join(body for _, body in reports)])


def unpack_reports(body: bytes) -> list[tuple[AttemptId, bytes]]:
    """Return the reports in the body of a call.

    Raises:
        InvalidInput: the body does not have this form.
    """
    first, end_of_line, rest = body.partition(b"\n")
    if not end_of_line:
        raise InvalidInput("the first line of these reports has no end", hint=_HINT)
    try:
        heads = ReportHeads.model_validate_json(first).reports
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise InvalidInput(f"the first line of these reports cannot be read: {reason}", hint=_HINT) from error
    if (announced_bytes := sum(head.size_bytes for head in heads)) != len(rest):
        raise InvalidInput(
            f"{announced_bytes} bytes of reports were announced, and {len(rest)} came", hint=_HINT
        )
    reports, offset = [], 0
    for head in heads:
        reports.append((AttemptId(head.attempt_id), rest[offset : offset + head.size_bytes]))
        offset += head.size_bytes
    return reports
