"""What routes do in several transactions or for several hosts, each in one transaction of the caller."""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, HostId, MatrixId
from farm.core.errors import FarmError
from farm.core.matrices.matrix import MatrixSpec
from farm.core.results.settle.report import IncomingReport, ReportAnswer
from farm.database.transaction import Tx
from farm.services.agents.pair_starts import compare_starts
from farm.services.matrices.cancel import cancel_chunk
from farm.services.matrices.lazy_expansion import expand_small
from farm.services.matrices.rerun import prepare_rerun
from farm.services.matrices.submit import prepare_matrix, store_matrix
from farm.services.results.parse import JobContexts, parse, report_subjects
from farm.services.results.settle import settle_reports
from farm.wire.documents.matrices.plans import CancellationView


def receive(connection: Connection, reports: Sequence[IncomingReport]) -> list[ReportAnswer | FarmError]:
    """Parse reports and settle them."""
    subjects = report_subjects(connection, reports, JobContexts())
    parsed = [parse(report, subject) for report, subject in zip(reports, subjects, strict=True)]
    return settle_reports(connection, compare_starts(connection, parsed))


def settle(tx: Tx, host_id: HostId, attempt_id: AttemptId, body: bytes) -> ReportAnswer:
    """Settle an attempt by a report, or raise its error."""
    report = IncomingReport(host_id=host_id, attempt_id=attempt_id, body=body, at=tx.now)
    (answer,) = receive(tx.connection, [report])
    if isinstance(answer, FarmError):
        raise answer
    return answer


def cancel_matrix(tx: Tx, matrix_id: MatrixId, *, device: str | None = None) -> CancellationView:
    """Cancel all jobs of a matrix, or those on one device."""
    return cancel_chunk(tx, matrix_id, device=device, limit=None)


def rerun_matrix(tx: Tx, matrix_id: MatrixId, *, failed: bool) -> MatrixId:
    """Submit the spec of a matrix again."""
    ready = prepare_rerun(tx.connection, matrix_id, failed=failed)
    return _expanded(tx, store_matrix(tx, ready, rerun_of=matrix_id))


def submit_matrix(tx: Tx, spec: MatrixSpec) -> MatrixId:
    """Submit a matrix, and queue its jobs."""
    return _expanded(tx, submit_unexpanded(tx, spec))


def submit_unexpanded(tx: Tx, spec: MatrixSpec) -> MatrixId:
    """Submit a matrix whose cells and jobs are still to be created."""
    return store_matrix(tx, prepare_matrix(tx.connection, spec))


def _expanded(tx: Tx, matrix_id: MatrixId) -> MatrixId:
    expand_small(tx, matrix_id)
    return matrix_id
