"""Compare how the two sides of a pair began, before a report is settled: too far apart repeats the block.

Only what is stored is compared: where both sides come in one call, their pair is left out, and not repeated.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.results.settle.report import NewMeasurement, ParsedReport, ReportReading
from farm.core.results.statistics.pair_distance import difference_of_starts, is_always_apart
from farm.core.runs.measurement import COUNTED
from farm.database.rows import to_record
from farm.store.results.settle.pair_starts import OtherSide, StoredStart, other_sides, past_pair_starts


def compare_starts(connection: Connection, reports: Sequence[ParsedReport]) -> list[ParsedReport]:
    """Return reports, marking measurements that began too far from the other side of a pair in their block.

    That is a pair lost, which another run of the block may bring; of a pair that is always lost it does not.
    """
    comparable = {
        report.incoming.attempt_id
        for report in reports
        if (measured := _measured(report)) is not None and _may_be_compared(measured)
    }
    others = other_sides(connection, comparable) if comparable else {}
    return [_marked(connection, report, others.get(report.incoming.attempt_id, ())) for report in reports]


def _measured(report: ParsedReport) -> NewMeasurement | None:
    return report.reading.measured if isinstance(report.reading, ReportReading) else None


def _may_be_compared(measured: NewMeasurement) -> bool:
    is_known = any(measured.values.get(name) is not None for name in StoredStart.__dataclass_fields__)
    return is_known and measured.quality in COUNTED


def _marked(connection: Connection, report: ParsedReport, others: Sequence[OtherSide]) -> ParsedReport:
    measured = _measured(report)
    if measured is None or not others or not isinstance(report.reading, ReportReading):
        return report
    own = to_record(StoredStart, measured.values)
    for other in others:
        sides = [(own, measured.cell_id), (other, other.cell_id)]
        (baseline, baseline_id), (candidate, candidate_id) = reversed(sides) if other.is_baseline else sides
        reason = difference_of_starts(baseline, candidate)
        past = [] if reason is None else past_pair_starts(connection, baseline_id, candidate_id)
        if reason is not None and not is_always_apart(past):
            noticed = {"notices": [*(measured.values["notices"] or ()), reason]}
            marked = replace(measured, apart=reason, values={**measured.values, **noticed})
            return replace(report, reading=replace(report.reading, measured=marked))
    return report
