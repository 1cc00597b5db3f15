"""One attempt with what it measured, its plan and its evidence."""

import json
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, JobId
from farm.core.errors import NotFound
from farm.core.jobs.attempt import Attempt
from farm.core.runs.plan import RunPlan
from farm.phone.condition.run_trace import run_trace
from farm.services.matrices.cell_setups import cell_setups
from farm.store.devices.devices import device_labels
from farm.store.jobs import attempts, jobs
from farm.store.jobs.run_order import orders_of
from farm.store.matrices import matrices
from farm.store.results import evidence as evidence_store
from farm.store.results import measurements
from farm.wire.documents.matrices.cell_setup import AttemptCell
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.storable_text import make_storable

_PLAN = TypeAdapter(RunPlan)


def attempt_view(connection: Connection, attempt_id: AttemptId) -> AttemptView:
    """Return an attempt with its cell, plan, outcome and evidence.

    Raises:
        NotFound: there is none.
    """
    attempt = attempts.find_attempt(connection, attempt_id)
    if attempt is None:
        raise NotFound(
            f"there is no attempt {attempt_id}", hint="`farm matrix jobs ID` lists a matrix's attempts"
        )
    # The report that counted goes last, to be shown; where none did, the latest is.
    reports = sorted(evidence_store.reports_of(connection, attempt_id), key=lambda report: report.counted)
    shown = reports[-1] if reports else None
    evidence = _evidence(shown.body) if shown and shown.body is not None else None
    stored = measurements.find_reading(connection, attempt_id)
    return AttemptView.of(
        attempt,
        device_label=device_labels(connection, [attempt.device_id]).get(attempt.device_id),
        plan=_PLAN.dump_python(attempt.plan, mode="json") if isinstance(attempt, Attempt) else None,
        evidence=evidence,
        evidence_expired_at=shown.expired_at if shown else None,
        evidence_expired_by=shown.expired_by if shown else None,
        quality=stored.quality if stored else None,
        quality_reasons=tuple(stored.quality_reasons) if stored else (),
        notices=tuple(stored.notices or ()) if stored else (),
        reading=stored.reading if stored else None,
        trace=run_trace(evidence.get("trace", "")) if evidence else None,
        order=orders_of(connection, [attempt_id]).get(attempt_id),
        cell=_measured_cell(connection, attempt.job_id),
    )


def _measured_cell(connection: Connection, job_id: JobId) -> AttemptCell | None:
    """Return the cell of a job; None for a health check."""
    job = jobs.find_job(connection, job_id)
    if job is None or job.cell_id is None:
        return None
    cell = matrices.get_cell(connection, job.cell_id)
    matrix = matrices.get_matrix(connection, cell.matrix_id)
    baselines = [] if cell.baseline_index is None else [cell.baseline_index]
    labels = matrices.labels_by_index(connection, cell.matrix_id, baselines)
    setup = cell_setups(connection, [cell]).setup(cell)
    return AttemptCell.of(setup, cell, job, matrix=matrix.name, baseline=next(iter(labels.values()), None))


def _evidence(report: bytes) -> dict[str, Any]:
    evidence: dict[str, Any] = json.loads(make_storable(report))["evidence"]
    return evidence
