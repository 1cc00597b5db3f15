"""Settle reports, each exactly once: load what is known, evaluate what it means, apply what that changes.

Reports that come together are settled in one transaction, as if one came after the other. Good runs that
follow each other are written by a handful of statements, however many they are; what has further consequences
is settled alone, by what is known after all before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, HostId
from farm.core.errors import FarmError
from farm.core.matrices.matrix import shuffle_round
from farm.core.operations.event import EventSubject, WorkEvent
from farm.core.results.settle.effects import Effect, RepeatBlock, RowEffect
from farm.core.results.settle.evaluation import evaluate
from farm.core.results.settle.report import IncomingReport, ParsedReport
from farm.database.notifications import notify_no_other_hosts
from farm.services.matrices.lazy_expansion import expand_rounds
from farm.services.results.preparse import parse_reports
from farm.store.jobs import jobs
from farm.store.jobs.fair_share import first_virtual_times
from farm.store.jobs.jobs import NewJob
from farm.store.matrices import matrices
from farm.store.matrices.equivalent_cells import poison_cells
from farm.store.operations.events import record_event
from farm.store.results.settle.effects import write
from farm.store.results.settle.report_context import load
from farm.wire.agents.protocol import ReportAnswer


def settle(
    connection: Connection, host_id: HostId, attempt_id: AttemptId, body: bytes, *, now: datetime
) -> ReportAnswer:
    """Parse a report and settle its attempt by it. The same bytes again get the same answer.

    A report of an attempt that is no longer its job's current one is kept and not counted.

    Raises:
        NotFound: there is no such attempt.
        Forbidden: the attempt is another host's.
        ReportConflict: the attempt was settled by another report.
        InvalidInput: the body is no report, or quotes another fencing token.
    """
    report = IncomingReport(host_id=host_id, attempt_id=attempt_id, body=body, at=now)
    (answer,) = settle_batch(connection, parse_reports(connection, [report]))
    if isinstance(answer, FarmError):
        raise answer
    return answer


def settle_batch(connection: Connection, reports: Sequence[ParsedReport]) -> list[ReportAnswer | FarmError]:
    """Settle reports in their order; for each its answer, or what `settle` would raise, harming no other."""
    # What is refused, or came before, is no work for anybody.
    notify_no_other_hosts(connection)
    answers: list[ReportAnswer | FarmError] = []
    while rest := reports[len(answers) :]:
        settlements = evaluate(load(connection, rest), rest)
        apply(connection, (effect for each in settlements for effect in each.effects))
        answers += [
            each.answer if isinstance(each.answer, FarmError) else ReportAnswer(**asdict(each.answer))
            for each in settlements
        ]
    return answers


def apply(connection: Connection, effects: Iterable[Effect]) -> None:
    """Write effects, in their order.

    Raises:
        FarmBusy: an attempt or a job is no longer where it was; the caller undoes all of it.
    """
    rows: list[RowEffect] = []
    for effect in effects:
        if isinstance(effect, RepeatBlock):
            write(connection, rows)
            rows.clear()
            _repeat_block(connection, effect)
        else:
            rows.append(effect)
    write(connection, rows)


def _repeat_block(connection: Connection, block: RepeatBlock) -> None:
    """Queue every cell of the job's device and round once more, but those that are run no more."""
    job, now, repeat = block.job, block.at, block.job.repeat + 1
    assert job.matrix_id is not None
    expand_rounds(connection, job.matrix_id, job.device_id, rounds=job.round, now=now)
    killers = poison_cells(connection, job.matrix_id)
    own = matrices.list_cells(connection, job.matrix_id, device_id=job.device_id)
    cells = [cell for cell in own if cell.cell_id not in killers]
    matrix = matrices.get_matrix(connection, job.matrix_id)
    virtual_times = first_virtual_times(
        connection, [job.device_id], priority=job.priority, submitted_by=matrix.submitted_by
    )
    virtual_time = virtual_times[job.device_id]
    new_jobs = [
        NewJob(
            device_id=job.device_id,
            cell_id=cell.cell_id,
            round=job.round,
            virtual_time=virtual_time,
            repeat=repeat,
        )
        for cell in shuffle_round(cells, round=job.round, seed=matrix.seed, repeat=repeat)
    ]
    jobs.add_jobs(connection, job.matrix_id, new_jobs, priority=job.priority, now=now)
    record_event(
        connection,
        at=now,
        actor="farm",
        kind=WorkEvent.BLOCK_REPEATED,
        subject=EventSubject.MATRIX,
        subject_id=job.matrix_id,
        to_state="queued",
        cause=f"{job.device_id} round {job.round}, repeat {repeat}: {block.cause}",
    )
