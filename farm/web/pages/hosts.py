"""The page of hosts: the machines that devices are attached to."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from farm.api.http.authorization import Viewer
from farm.core.base.ids import HostId
from farm.database.transaction import Tx
from farm.services.hosts.views import list_host_views
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE

router = APIRouter(route_class=PageRoute)


@router.get("/hosts")
async def get_hosts(
    request: Request,
    caller: Viewer,
    part: str | None = None,
    after: Annotated[str, Query(max_length=128)] = "",
) -> Response:
    """Show the hosts with their sessions, devices and incidents."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        views = list_host_views(tx.connection, after=HostId(after), limit=MAX_LIST_PAGE)
        return {"hosts": views, "next": views[-1].host_id if len(views) == MAX_LIST_PAGE else None}

    return await render_page(
        request, "hosts", caller=caller, part=part, parts={"rows": rows}, title="Hosts", after=after
    )
