"""Routes for hosts: list and administer them."""

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Viewer, as_caller
from farm.api.http.pages import AfterName, ListPageSize
from farm.core.base.ids import HostId
from farm.core.devices.host_state import HostEvent
from farm.services.hosts.admin import change_host, limit_host, retire_host, retirement_plan
from farm.services.hosts.views import host_detail, list_host_views
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostChange, HostDetail, HostRetirementPlan, HostView, LimitRequest

router = APIRouter(prefix="/api/v1/hosts")


@router.get("")
async def get_hosts(
    _: Viewer, farm: Farm, after: AfterName = "", limit: ListPageSize = MAX_LIST_PAGE
) -> list[HostView]:
    """Return a page of the hosts that ever joined, by name; a page that is not full is the last."""
    return await farm.database.read_async(list_host_views, after=HostId(after), limit=limit)


@router.get("/{host}")
async def get_host(host: str, _: Viewer, farm: Farm) -> HostDetail:
    """Return one host with its devices, incidents and events."""
    return await farm.database.read_async(host_detail, host)


@router.post("/{host}/drain")
async def post_drain(host: str, request: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Stop giving a host work; its present runs continue to their end."""
    return await farm.change(change_host, host, HostEvent.DRAINED, as_caller(caller, request))


@router.post("/{host}/activate")
async def post_activate(host: str, request: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Give a drained host work again."""
    return await farm.change(change_host, host, HostEvent.ACTIVATED, as_caller(caller, request))


@router.post("/{host}/limit")
async def post_limit(host: str, request: LimitRequest, caller: Operator, farm: Farm) -> HostChange:
    """Set how many runs a host may have at once."""
    return await farm.change(limit_host, host, as_caller(caller, request))


@router.get("/{host}/retirement")
async def get_retirement(host: str, _: Viewer, farm: Farm) -> HostRetirementPlan:
    """Return what retiring a host would cancel."""
    return await farm.database.read_async(retirement_plan, host)


@router.post("/{host}/retire")
async def post_retire(host: str, request: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Remove a host from the farm; its credential is invalid from then on."""
    return await farm.change(retire_host, host, as_caller(caller, request))
