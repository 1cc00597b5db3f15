"""What the last golden run of a phone says of it, for people."""

from sqlalchemy.engine import Connection

from farm.core.checks.reference_run import ReferenceAssessment, ReferenceRun, assess_reference_run
from farm.store.checks import reference_runs
from farm.store.devices.devices import Device


def reference_run_text(connection: Connection, device: Device) -> str | None:
    """What a phone's last golden run took, and how that compares; None before its first."""
    last = reference_runs.own_runs(connection, device.device_id, limit=1)
    if not last:
        return None
    run = last[0]
    return f"{run.verdict.replace('_', ' ')}: {_assess(connection, run).words}"


def _assess(connection: Connection, run: ReferenceRun) -> ReferenceAssessment:
    return assess_reference_run(
        run.value_ns,
        unfit=() if run.unfit_reasons is None else (run.unfit_reasons,),
        kind=reference_runs.runs_of_kind(
            connection, run.reference_key, run.program_digest, before=run.measured_at
        ),
        own=reference_runs.own_fit_runs(connection, run),
        now=run.measured_at,
    )
