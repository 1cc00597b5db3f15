"""Pages of single numbers: a cell with its comparison, and an attempt, each with its proof."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import AttemptId, CellId
from farm.core.operations.event import AccessEvent
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.core.runs.trace import RunTrace
from farm.database.transaction import Tx
from farm.presentation.csv_text import csv_line
from farm.presentation.jobs.attempt import (
    cell_fields,
    command_text,
    evidence_of,
    missing_text,
    notice_fields,
    order_text,
    plan_fields,
    plan_of,
    reason_fields,
    run_fields,
    state_text,
    unchecked_text,
)
from farm.presentation.jobs.condition import condition_rows
from farm.presentation.jobs.measurement import reading_fields
from farm.presentation.jobs.pending import PendingReport
from farm.presentation.jobs.runs import run_rows
from farm.presentation.jobs.trace import trace_columns, trace_rows
from farm.presentation.labels import device_name
from farm.presentation.text import Field, local_time_text
from farm.services.jobs.pending_reasons import job_waiting
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.explanations.jobs import cell_jobs
from farm.store.jobs.jobs import first_open_job
from farm.store.operations.event_log import last_events
from farm.store.results.interchange.external_results import has_external_results
from farm.web.charts.rounds import rounds_chart
from farm.web.charts.strip import samples_strip, trace_strips
from farm.web.http.csv_response import columns_of, csv_table_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count
from farm.wire.documents.matrices.jobs import AttemptView

router = APIRouter(route_class=PageRoute)

_EVENTS = 20
#: Jobs of a cell on one page.
_JOBS = 200
_ROUND_COLUMNS = (
    "round",
    "block",
    "repeat",
    "baseline_ns",
    "candidate_ns",
    "ratio",
    "minutes_apart",
    "baseline_attempt",
    "candidate_attempt",
)


@router.get("/cells/{cell_id}")
async def get_cell(
    request: Request, cell_id: Count, caller: Viewer, part: str | None = None, after: Count = 0
) -> Response:
    """Show what the numbers of a cell, and its comparison, rest on, and each of its runs."""

    def explanation(tx: Tx) -> Mapping[str, Any]:
        view = explain_cell(tx.connection, CellId(cell_id))
        speedup = view.speedup
        low, high = (None, None) if speedup is None else (speedup.ci_low, speedup.ci_high)
        model = view.candidate.manifest.model if view.candidate.manifest else None
        return {
            "cell": view,
            # The model that others measured, too.
            "others": model if model and has_external_results(tx.connection, model=model) else None,
            "title": f"{view.candidate.label} on {view.device.label or view.device.device_id}",
            "rounds": rounds_chart(view.rounds, low, high),
            "sides": [side for side in (view.candidate, view.baseline) if side is not None],
        }

    def runs(tx: Tx) -> Mapping[str, Any]:
        jobs = cell_jobs(tx.connection, CellId(cell_id), after=after, limit=_JOBS)
        first_open = first_open_job(tx.connection, CellId(cell_id))
        waiting = None if first_open is None else job_waiting(tx.connection, first_open)
        return {
            "runs": list(run_rows(jobs)),
            "waiting": [] if waiting is None else list(PendingReport(tx.now).job(waiting)),
            "waiting_job": first_open,
            "next": jobs[-1].job_id if len(jobs) == _JOBS else None,
        }

    return await render_page(
        request,
        "numbers/cell",
        caller=caller,
        part=part,
        parts={"explanation": explanation, "runs": runs},
        cell_id=cell_id,
    )


@router.get("/cells/{cell_id}/rounds.csv")
async def get_rounds_csv(cell_id: Count, _: Viewer, farm: Farm) -> Response:
    """Return the rounds that count in the comparison of a cell."""
    view = await farm.database.read_async(explain_cell, CellId(cell_id))
    return await csv_table_response(f"cell-{cell_id}-rounds", view.rounds, columns_of(*_ROUND_COLUMNS))


@router.get("/attempts/{attempt_id}")
async def get_attempt(
    request: Request, attempt_id: Count, caller: Viewer, farm: Farm, part: str | None = None
) -> Response:
    """Show one run: what it measured, its samples, conditions and command, and the proof of where it ran."""

    def run(tx: Tx) -> Mapping[str, Any]:
        view = attempt_view(tx.connection, AttemptId(attempt_id))
        farm.evidence_reads.note(caller, AccessEvent.EVIDENCE_READ, attempt_id)
        plan, evidence, trace = plan_of(view), evidence_of(view), view.trace
        columns = () if trace is None else trace_columns(trace)
        subject = view.cell.label if view.cell else "health check"
        return {
            "attempt": view,
            "device": device_name(view),
            "title": f"Attempt {attempt_id}: {subject} on {device_name(view)}",
            "outcome": [*_outcome_fields(view, evidence, plan)],
            "measured": [
                *(cell_fields(view.cell) if view.cell else ()),
                *(plan_fields(plan) if plan else ()),
                ("order", order_text(view.order) if view.order else None),
            ],
            "links": _links(view),
            "evidence": evidence,
            "command": command_text(plan, evidence),
            "run": [] if evidence is None else [*run_fields(evidence)],
            "missing": missing_text(view),
            "samples": None if view.reading is None else samples_strip(view.reading.samples_ns),
            "strips": [] if trace is None else trace_strips(trace),
            "trace_columns": columns,
            "trace_rows": [] if trace is None else [*trace_rows(trace, columns)],
            "conditions": [] if evidence is None else condition_rows(evidence.before, evidence.after),
            "unchecked": unchecked_text(evidence, plan),
            "outputs": [] if evidence is None else _outputs(evidence),
            "events": last_events(tx.connection, "attempt", attempt_id, limit=_EVENTS),
        }

    return await render_page(
        request, "numbers/attempt", caller=caller, part=part, parts={"run": run}, attempt_id=attempt_id
    )


def _outcome_fields(view: AttemptView, evidence: Evidence | None, plan: RunPlan | None) -> Iterator[Field]:
    yield "state", state_text(view)
    yield from reason_fields(view)
    if view.reading is not None:
        yield from reading_fields(view.reading)
    yield from notice_fields(view, evidence, plan)
    yield "claimed", local_time_text(view.claimed_at)
    yield "ended", None if view.finished_at is None else local_time_text(view.finished_at)


def _links(view: AttemptView) -> Mapping[str, str]:
    """Return the pages of what was measured, and of what ran before it, by the names of the fields."""
    links: dict[str, str] = {}
    if view.cell is not None:
        links |= {"of": f"/matrices/{view.cell.matrix_id}", "cell": f"/cells/{view.cell.cell_id}"}
    if view.order is not None and view.order.predecessor is not None:
        links["order"] = f"/attempts/{view.order.predecessor.attempt_id}"
    return links


def _outputs(evidence: Evidence) -> list[tuple[str, str]]:
    """Return what a run printed, and the logs of its diagnostic passes, by their names."""
    outputs = [("stdout", evidence.stdout), ("stderr", evidence.stderr)]
    outputs += [(f"log of pass {own.name}, not measured", own.log) for own in evidence.passes]
    return [(name, text) for name, text in outputs if text]


@router.get("/attempts/{attempt_id}/trace.csv")
async def get_trace_csv(attempt_id: Count, caller: Viewer, farm: Farm) -> Response:
    """Return what the device sampled of itself during a run."""
    view = await farm.database.read_async(attempt_view, AttemptId(attempt_id))
    farm.evidence_reads.note(caller, AccessEvent.EVIDENCE_READ, attempt_id)
    trace = view.trace or RunTrace()
    columns = trace_columns(trace)

    def lines(rows: Iterable[Sequence[float | None]]) -> Iterator[str]:
        yield csv_line(columns)
        yield from map(csv_line, rows)

    return await csv_table_response(f"attempt-{attempt_id}-trace", [*trace_rows(trace, columns)], lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """The time of one iteration."""

    iteration: int
    time_ns: int


@router.get("/attempts/{attempt_id}/samples.csv")
async def get_samples_csv(attempt_id: Count, caller: Viewer, farm: Farm) -> Response:
    """Return the times of a run's iterations, in their order."""
    view = await farm.database.read_async(attempt_view, AttemptId(attempt_id))
    farm.evidence_reads.note(caller, AccessEvent.EVIDENCE_READ, attempt_id)
    times_ns = () if view.reading is None else view.reading.samples_ns
    samples = [_Sample(iteration=number, time_ns=time_ns) for number, time_ns in enumerate(times_ns, 1)]
    return await csv_table_response(f"attempt-{attempt_id}", samples, columns_of("iteration", "time_ns"))
