"""Pages of devices: the grid of all, and one with its facts, conditions, runs and events."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import DeviceId
from farm.presentation.device_state import device_group, device_state_text, find_remedy, since_text
from farm.services.checks.device_detail import device_detail
from farm.services.devices.views import list_device_views
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.devices import DeviceView

router = APIRouter(route_class=PageRoute)


@router.get("/devices")
async def get_devices(
    request: Request, caller: Viewer, farm: Farm, part: str | None = None, find: str = "", after: str = ""
) -> Response:
    """Show a card for each device."""

    async def grid() -> Mapping[str, Any]:
        views = await farm.database.read_async(list_device_views, after=DeviceId(after), limit=MAX_LIST_PAGE)
        shown = [card(view) for view in views if _matches(view, find)]
        return {
            "cards": shown,
            "listed": len(views),
            "next": views[-1].device_id if len(views) == MAX_LIST_PAGE else None,
        }

    return await render_page(
        request, "devices", caller=caller, part=part, parts={"grid": grid}, title="Devices", find=find
    )


@router.get("/devices/{device}")
async def get_device(
    request: Request, device: str, caller: Viewer, farm: Farm, part: str | None = None
) -> Response:
    """Show one device."""

    async def detail() -> Mapping[str, Any]:
        view = await farm.database.read_async(device_detail, device)
        return {"device": view, "card": card(view), "remedy": find_remedy(view), "title": view.name}

    return await render_page(request, "devices/one", caller=caller, part=part, parts={"detail": detail})


def card(view: DeviceView) -> Mapping[str, Any]:
    """Return what the card of a device shows."""
    kind, _ = device_group(view)
    return {"view": view, "kind": kind, "state": device_state_text(view), "since": since_text(view)}


def _matches(view: DeviceView, find: str) -> bool:
    words = " ".join(
        filter(None, [view.name, view.device_id, view.device_model, view.soc, view.host, *view.tags])
    )
    return all(word in words.casefold() for word in find.casefold().split())
