"""Pages of single numbers: a cell with its comparison, and an attempt, each with its proof."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import TypeAdapter

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import AttemptId, CellId
from farm.core.operations.event import FarmEvent
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.database.transaction import Tx
from farm.presentation.labels import device_name
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.explanations.cells import explain_cell
from farm.store.operations.event_log import last_events
from farm.web.charts.rounds import rounds_chart
from farm.web.charts.strip import samples_strip, trace_strips
from farm.web.http.csv_response import columns_of, csv_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import Count

router = APIRouter(route_class=PageRoute)

_PLAN = TypeAdapter(RunPlan)
_EVIDENCE = TypeAdapter(Evidence)
_EVENTS = 20


@router.get("/cells/{cell_id}")
async def get_cell(request: Request, cell_id: Count, caller: Viewer, part: str | None = None) -> Response:
    """Show what the numbers of a cell, and its comparison, rest on."""

    def explanation(tx: Tx) -> Mapping[str, Any]:
        view = explain_cell(tx.connection, CellId(cell_id))
        speedup = view.speedup
        low, high = (None, None) if speedup is None else (speedup.ci_low, speedup.ci_high)
        return {
            "cell": view,
            "title": f"{view.candidate.label} on {view.device.label or view.device.device_id}",
            "rounds": rounds_chart(view.rounds, low, high),
            "sides": [side for side in (view.candidate, view.baseline) if side is not None],
        }

    return await render_page(
        request, "numbers/cell", caller=caller, part=part, parts={"explanation": explanation}, cell_id=cell_id
    )


@router.get("/attempts/{attempt_id}")
async def get_attempt(
    request: Request, attempt_id: Count, caller: Viewer, farm: Farm, part: str | None = None
) -> Response:
    """Show one run: its command, conditions, samples, and where it ran, with the line that proves it."""

    def run(tx: Tx) -> Mapping[str, Any]:
        view = attempt_view(tx.connection, AttemptId(attempt_id))
        farm.evidence_reads.note(caller, FarmEvent.EVIDENCE_READ, attempt_id)
        plan = None if view.plan is None else _PLAN.validate_python(view.plan)
        evidence = None if view.evidence is None else _EVIDENCE.validate_python(view.evidence)
        return {
            "attempt": view,
            "device": device_name(view),
            "plan": plan,
            "evidence": evidence,
            "command": command_text(plan, evidence),
            "samples": None if view.reading is None else samples_strip(view.reading.samples_ns),
            "trace": [] if view.trace is None else trace_strips(view.trace),
            "events": last_events(tx.connection, "attempt", attempt_id, limit=_EVENTS),
        }

    return await render_page(
        request,
        "numbers/attempt",
        caller=caller,
        part=part,
        parts={"run": run},
        title=f"Attempt {attempt_id}",
    )


def command_text(plan: RunPlan | None, evidence: Evidence | None) -> str | None:
    """Return the command that ran; before that the planned one, with places for the device's paths."""
    argv = (evidence.argv if evidence else ()) or (plan.argv if plan else ())
    return shlex.join(argv) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """The time of one iteration."""

    iteration: int
    time_ns: int


@router.get("/attempts/{attempt_id}/samples.csv")
async def get_samples_csv(attempt_id: Count, caller: Viewer, farm: Farm) -> Response:
    """Return the times of a run's iterations, in their order."""
    view = await farm.database.read_async(attempt_view, AttemptId(attempt_id))
    farm.evidence_reads.note(caller, FarmEvent.EVIDENCE_READ, attempt_id)
    samples = () if view.reading is None else view.reading.samples_ns

    async def page(last: _Sample | None) -> list[_Sample]:
        if last is not None:
            return []
        return [_Sample(iteration=number, time_ns=time_ns) for number, time_ns in enumerate(samples, 1)]

    return await csv_response(f"attempt-{attempt_id}", page, columns_of("iteration", "time_ns"))
