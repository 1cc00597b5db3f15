"""What people and scripts call about hosts."""

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Viewer, as_caller
from farm.core.devices.host_state import HostEvent
from farm.services.hosts.admin import change_host, limit_host, retire_host, retirement_plan
from farm.services.hosts.views import host_detail, list_host_views
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.hosts import HostChange, HostDetail, HostRetirementPlan, HostView, LimitRequest

router = APIRouter(prefix="/api/v1/hosts")


@router.get("")
async def get_hosts(_: Viewer, farm: Farm) -> list[HostView]:
    """Every host that ever joined."""
    return await farm.database.read_async(list_host_views)


@router.get("/{host}")
async def get_host(host: str, _: Viewer, farm: Farm) -> HostDetail:
    """One host with its phones and what happened to it."""
    return await farm.database.read_async(host_detail, host)


@router.post("/{host}/drain")
async def post_drain(host: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Begin nothing new on a host; what runs there goes on to its end."""
    request = as_caller(caller, asked)
    return await farm.database.change_async(
        change_host, host, HostEvent.DRAINED, request, now=farm.clock.now()
    )


@router.post("/{host}/activate")
async def post_activate(host: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Give a drained host work again."""
    request = as_caller(caller, asked)
    return await farm.database.change_async(
        change_host, host, HostEvent.ACTIVATED, request, now=farm.clock.now()
    )


@router.post("/{host}/limit")
async def post_limit(host: str, asked: LimitRequest, caller: Operator, farm: Farm) -> HostChange:
    """Set how many runs a host may have at once."""
    request = as_caller(caller, asked)
    return await farm.database.change_async(limit_host, host, request, now=farm.clock.now())


@router.get("/{host}/retirement")
async def get_retirement(host: str, _: Viewer, farm: Farm) -> HostRetirementPlan:
    """What retiring a host would end."""
    return await farm.database.read_async(retirement_plan, host)


@router.post("/{host}/retire")
async def post_retire(host: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> HostChange:
    """Take a host out of the farm; its credential is good for nothing from then on."""
    request = as_caller(caller, asked)
    return await farm.database.change_async(retire_host, host, request, now=farm.clock.now())
