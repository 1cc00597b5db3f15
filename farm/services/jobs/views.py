"""One attempt with all that is kept of it."""

import json
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId
from farm.core.errors import NotFound
from farm.core.runs.plan import RunPlan
from farm.store.jobs import attempts
from farm.store.results import detail as measurement_detail
from farm.store.results import evidence as evidence_store
from farm.store.results.detail import StoredReading
from farm.wire.documents.matrices.matrices import AttemptView
from farm.wire.documents.results.readings import ReadingView
from farm.wire.storable_text import make_storable

_PLAN = TypeAdapter(RunPlan)


def attempt_view(connection: Connection, attempt_id: AttemptId) -> AttemptView:
    """An attempt: plan, ending, evidence.

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
    reading = measurement_detail.find_reading(connection, attempt_id)
    return AttemptView(
        attempt_id=attempt.attempt_id,
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        fence=attempt.fence,
        state=attempt.state,
        outcome=attempt.outcome,
        blame=attempt.blame,
        code=attempt.code,
        message=attempt.message,
        claimed_at=attempt.claimed_at,
        finished_at=attempt.finished_at,
        plan=_PLAN.dump_python(attempt.plan, mode="json"),
        waiting_for=attempt.waiting_for,
        evidence=_evidence(shown.body) if shown and shown.body is not None else None,
        evidence_expired_at=shown.expired_at if shown else None,
        evidence_expired_by=shown.expired_by if shown else None,
        quality=reading.quality if reading else None,
        quality_reasons=tuple(reading.quality_reasons) if reading else (),
        reading=_reading_view(reading) if reading else None,
    )


def _evidence(report: bytes) -> dict[str, Any]:
    evidence: dict[str, Any] = json.loads(make_storable(report))["evidence"]
    return evidence


def _reading_view(reading: StoredReading) -> ReadingView:
    return ReadingView(
        kind=reading.kind,
        value_ns=reading.value_ns,
        mean_ns=reading.mean_ns,
        min_ns=reading.min_ns,
        max_ns=reading.max_ns,
        p90_ns=reading.p90_ns,
        scatter=reading.scatter,
        samples_ns=reading.samples_ns,
        metrics=reading.metrics,
        actual_backend=reading.actual_backend,
        accelerator=reading.accelerator,
        proof=reading.proof,
        offered=reading.offered,
        variant_digest=reading.variant_digest,
        program_digest=reading.program_digest,
        parser_version=reading.parser_version,
    )
