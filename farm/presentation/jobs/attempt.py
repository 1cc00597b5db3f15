"""One attempt as text: what was measured, how it ran, and what came of it."""

import shlex
from collections.abc import Iterator, Sequence

from pydantic import TypeAdapter

from farm.core.base.units import elapsed_text, size_text
from farm.core.devices.condition import unknown_gates
from farm.core.devices.controls import ControlState
from farm.core.jobs.run_order import Predecessor, RunOrder
from farm.core.runs.evidence import Evidence, ExitRecord, RunError
from farm.core.runs.plan import PlanFile, RunPlan
from farm.presentation.text import Field, failure_text, local_time_text, round_text, with_attempt
from farm.wire.documents.matrices.cell_setup import AttemptCell
from farm.wire.documents.matrices.jobs import AttemptView

_PLAN = TypeAdapter(RunPlan)
_EVIDENCE = TypeAdapter(Evidence)


def plan_of(view: AttemptView) -> RunPlan | None:
    """Return the plan of an attempt; None once it expired."""
    return None if view.plan is None else _PLAN.validate_python(view.plan)


def evidence_of(view: AttemptView) -> Evidence | None:
    """Return the evidence of an attempt; None before a report, and once it expired."""
    return None if view.evidence is None else _EVIDENCE.validate_python(view.evidence)


def state_text(view: AttemptView) -> str:
    """Return `finished, failed, blame variant`."""
    parts = (view.state, view.outcome, view.blame and f"blame {view.blame}")
    return ", ".join(str(part) for part in parts if part)


def cell_fields(cell: AttemptCell) -> Iterator[Field]:
    """Return what an attempt measured: matrix and round, cell, model, program and settings."""
    where = round_text(cell.round, cell.block, cell.repeat)
    yield "of", f"matrix {cell.matrix_id} ({cell.matrix}), {where}"
    against = "" if cell.baseline is None else f", compared with {cell.baseline}"
    yield "cell", f"{cell.cell_id}, {cell.label}{against}"
    yield "model", " ".join(filter(None, [cell.model, cell.precision, cell.format])) or None
    yield "variant", cell.variant


def reason_fields(view: AttemptView) -> Iterator[Field]:
    """Return why an attempt ended as it did, or waits, and the quality of its measurement."""
    yield "why", with_attempt(failure_text(view.message, view.code), view.attempt_id) or None
    yield "waits", view.waiting_for or None
    if view.quality:
        reasons = f": {'; '.join(view.quality_reasons)}" if view.quality_reasons else ""
        yield "quality", f"{view.quality}{reasons}"


def plan_fields(plan: RunPlan) -> Iterator[Field]:
    """Return harness, requested backend and settings, the files, and the environment of a run."""
    settings = ", ".join(f"{name}={value}" for name, value in plan.settings.items()) or "no settings"
    yield "harness", f"{plan.harness}, {plan.backend}; {settings}"
    yield from (_file(file) for file in plan.files)
    yield from (("variable", f"{name}={value}") for name, value in plan.env.items())


def _file(file: PlanFile) -> Field:
    name = f"{file.name} at {file.path}" if file.path else file.name
    return "file", f"{name}, {size_text(file.size_bytes)}, {file.digest}"


def order_text(order: RunOrder) -> str:
    """Return `place 2 in its block, after int8-core (attempt 41)`."""
    place = "" if order.place is None else f"place {order.place} in its block, "
    return f"{place}{predecessor_text(order.predecessor)}"


def predecessor_text(before: Predecessor | None) -> str:
    """Return `after int8-core (attempt 41), which ran 4 s and ended 12 s before`."""
    if before is None:
        return "after no benchmark: the first on its device, or after a health check"
    matrix = "" if before.same_matrix else f" of matrix {before.matrix_id}"
    ran = None if before.ran_s is None else f"ran {elapsed_text(before.ran_s)}"
    pause = None if before.pause_s is None else f"ended {elapsed_text(before.pause_s)} before"
    times = " and ".join(text for text in (ran, pause) if text)
    return f"after {before.label}{matrix} (attempt {before.attempt_id}){times and f', which {times}'}"


def command_text(plan: RunPlan | None, evidence: Evidence | None) -> str | None:
    """Return the command that ran; before that the planned one, with places for the device's paths."""
    argv = (evidence.argv if evidence else ()) or (plan.argv if plan else ())
    return shlex.join(argv) or None


def missing_text(view: AttemptView) -> str:
    """Return why an attempt has no output: no report yet, or it expired."""
    if view.evidence_expired_at is None:
        return "no report yet"
    return f"output expired on {local_time_text(view.evidence_expired_at)}, by the {view.evidence_expired_by}"


def notice_fields(view: AttemptView, evidence: Evidence | None, plan: RunPlan | None) -> Iterator[Field]:
    """Return what does not lower the quality, without gates that were not checked."""
    named = {f"{name} unknown" for name in _unchecked(evidence, plan)}
    yield from (("notice", notice) for notice in view.notices if notice not in named)


def unchecked_text(evidence: Evidence | None, plan: RunPlan | None) -> str | None:
    """Return which gates could not be checked; None where all were."""
    unchecked = _unchecked(evidence, plan)
    return f"not checked (not reported): {', '.join(unchecked)}" if unchecked else None


def _unchecked(evidence: Evidence | None, plan: RunPlan | None) -> Sequence[str]:
    if evidence is None or evidence.before is None or plan is None:
        return ()
    return unknown_gates(evidence.before, plan.gates)


def run_fields(evidence: Evidence) -> Iterator[Field]:
    """Return how a run went: its start, the wait for gates, its exit and CPU time, its error."""
    again = ", resumed after an agent restart" if evidence.adopted else ""
    yield "started", f"{local_time_text(evidence.started_at)}{again}" if evidence.started_at else None
    yield "waited", f"{elapsed_text(evidence.waited_s)} for gates" if evidence.waited_s else None
    yield "pushed", f"{size_text(evidence.pushed_bytes)} to the device" if evidence.argv else None
    yield "exit", exit_text(evidence.exit) if evidence.exit else None
    if evidence.error:
        yield from error_fields(evidence.error)


def exit_text(record: ExitRecord) -> str:
    """Return `code 0 after 1.25 s, 4.80 s of CPU time`."""
    killed = ", killed at its time-out" if record.timed_out else ""
    spent = "" if record.cpu_s is None else f", {record.cpu_s:.2f} s of CPU time"
    return f"code {record.code} after {record.duration_s:.2f} s{spent}{killed}"


def error_fields(error: RunError) -> Iterator[Field]:
    """Return an error of a run, and what to do about it."""
    yield "error", f"{error.message} [{error.code}, blame {error.blame}]"
    yield "", f"hint: {error.hint}"


def control_text(state: ControlState) -> str:
    """Return the requested value, the original value, and the values read before and after the run."""
    was = "" if state.before is None else f", {state.before} otherwise"
    before = "" if state.actual_before is None else f", {state.actual_before} before the run"
    after = "" if state.actual_after is None else f", {state.actual_after} after it"
    return f"{state.name} {state.requested}{was}{before}{after}"
