"""Pages of devices: the grid of all, and one with its facts, conditions, jobs and events."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import DeviceId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.database.transaction import Tx
from farm.presentation.device_state import (
    STATE_TEXT,
    StateClass,
    device_group,
    device_state_text,
    find_remedy,
    has_words,
)
from farm.services.checks.device_detail import device_detail
from farm.services.devices.views import FleetDevice, device_named, find_device_views
from farm.store.checks.reference_runs import own_runs
from farm.store.devices.devices import Device
from farm.store.devices.run_conditions import last_run_conditions
from farm.store.devices.workload import count_waiting
from farm.store.jobs.open_work import LiveRun, live_runs
from farm.store.jobs.queues import queue_heads
from farm.store.results.interchange.external_results import has_external_results
from farm.web.charts.conditions import condition_plots, reference_plot
from farm.web.http.csv_response import columns_of, csv_table_response
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.documents.devices import DeviceView

router = APIRouter(route_class=PageRoute)

_CARDS = 60
#: Runs and reference runs whose conditions are shown.
_RUNS, _REFERENCE_RUNS = 200, 50


@router.get("/devices")
async def get_devices(
    request: Request,
    caller: Viewer,
    part: str | None = None,
    find: Annotated[str, Query(max_length=128)] = "",
    state: Annotated[str, Query(max_length=16)] = "",
    after: Annotated[str, Query(max_length=128)] = "",
) -> Response:
    """Show a card for each device."""

    def is_wanted(device: Device, status: FleetDevice) -> bool:
        return (not state or device_group(status)[0] == state) and has_words(find, _names(device))

    def grid(tx: Tx) -> Mapping[str, Any]:
        if state and state not in [*StateClass]:
            raise InvalidInput(f"state: there is no `{state}`", hint=name_hint(state, [*StateClass]))
        views = find_device_views(tx.connection, after=DeviceId(after), limit=_CARDS, is_wanted=is_wanted)
        return {
            "cards": _cards(tx, views),
            "next": views[-1].device_id if len(views) == _CARDS else None,
        }

    return await render_page(
        request,
        "devices",
        caller=caller,
        part=part,
        parts={"grid": grid},
        title="Devices",
        find=find,
        state=state,
        states=STATE_TEXT,
        after=after,
    )


@router.get("/devices/{device}")
async def get_device(request: Request, device: str, caller: Viewer, part: str | None = None) -> Response:
    """Show one device."""

    def detail(tx: Tx) -> Mapping[str, Any]:
        view = device_detail(tx.connection, device)
        device_ids = [view.device_id]
        (card,) = _cards(tx, [view])
        return {
            "device": view,
            "card": card,
            "remedy": find_remedy(view),
            "title": view.name,
            # Timings of `farm live` among them.
            "has_others": has_external_results(tx.connection, device=view.name),
            "waiting": count_waiting(tx.connection, device_ids),
            "first": queue_heads(tx.connection, device_ids).get(view.device_id),
        }

    def conditions(tx: Tx) -> Mapping[str, Any]:
        own = device_named(tx.connection, device)
        runs = last_run_conditions(tx.connection, own.device_id, limit=_RUNS)
        reference = own_runs(tx.connection, own.device_id, limit=_REFERENCE_RUNS)
        return {
            "runs": runs,
            "plots": condition_plots(runs),
            "reference": reference,
            "reference_plot": reference_plot(reference),
        }

    return await render_page(
        request,
        "devices/one",
        caller=caller,
        part=part,
        parts={"detail": detail, "conditions": conditions},
    )


@router.get("/devices/{device}/conditions.csv")
async def get_device_conditions(_: Viewer, device: str, farm: Farm) -> Response:
    """Return the conditions of a device at its last runs."""
    own = await farm.database.read_async(device_named, device)
    runs = await farm.database.read_async(last_run_conditions, own.device_id, limit=_RUNS)
    columns = ("attempt_id", "measured_at", "start_battery_c", "start_skin_c", "clock_pct", "quality")
    return await csv_table_response("conditions", runs, columns_of(*columns))


@router.get("/devices/{device}/reference.csv")
async def get_reference_runs(_: Viewer, device: str, farm: Farm) -> Response:
    """Return the last reference runs of a device."""
    own = await farm.database.read_async(device_named, device)
    runs = await farm.database.read_async(own_runs, own.device_id, limit=_REFERENCE_RUNS)
    columns = ("job_id", "measured_at", "value_ns", "verdict", "unfit_reasons")
    return await csv_table_response("reference-runs", runs, columns_of(*columns))


def _cards(tx: Tx, views: Sequence[DeviceView]) -> list[Mapping[str, Any]]:
    """Return what the cards of devices show."""
    busy = [view.device_id for view in views if view.job_id is not None]
    runs: Mapping[DeviceId, LiveRun] = live_runs(tx.connection, busy) if busy else {}
    return [
        {
            "view": view,
            "kind": device_group(view)[0],
            "state": device_state_text(view),
            "run": runs.get(view.device_id),
        }
        for view in views
    ]


def _names(device: Device) -> Sequence[str | None]:
    facts = device.facts
    model, soc = (None, None) if facts is None else (facts.device_model, facts.soc)
    return device.label, device.device_id, device.host_id, model, soc, *device.tags
