"""What people and scripts call about phones."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Viewer, as_caller, name_of
from farm.core.devices.admin import AdminEvent
from farm.core.upkeep.device_action import DeviceActionKind
from farm.services.checks.device_detail import device_detail
from farm.services.checks.rebaseline import rebaseline
from farm.services.checks.requested import assert_clean, request_check
from farm.services.devices.admin import change_admin, change_label, change_tags, retire, retirement_plan
from farm.services.devices.reservations import adb_access, release, reserve
from farm.services.devices.views import list_device_views
from farm.services.upkeep.device_actions import get_device_action, request_device_action
from farm.wire.base import Count
from farm.wire.documents.devices import (
    AdbAccess,
    DeviceActionView,
    DeviceChange,
    DeviceDetail,
    DeviceView,
    LabelRequest,
    OperatorRequest,
    Person,
    RebaselineRequest,
    ReleaseRequest,
    ReservationRequest,
    RetirementPlan,
    TagRequest,
)

T = TypeVar("T")

router = APIRouter(prefix="/api/v1")


@router.get("/devices")
async def get_devices(_: Viewer, farm: Farm) -> list[DeviceView]:
    """Every phone the farm knows."""
    return await farm.database.read_async(list_device_views)


@router.get("/devices/{device}")
async def get_device(device: str, _: Viewer, farm: Farm) -> DeviceDetail:
    """One phone by its id, its label, or the unique beginning of either."""
    return await farm.database.read_async(device_detail, device)


@router.post("/devices/{device}/admit")
async def post_admit(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Let a new phone, or a retired one, into the pool."""
    return await _changed(farm, change_admin, device, AdminEvent.ADMITTED, as_caller(caller, asked))


@router.post("/devices/{device}/cordon")
async def post_cordon(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Give a phone no further work; its queue stays."""
    return await _changed(farm, change_admin, device, AdminEvent.CORDONED, as_caller(caller, asked))


@router.post("/devices/{device}/uncordon")
async def post_uncordon(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Give a phone work again."""
    return await _changed(farm, change_admin, device, AdminEvent.UNCORDONED, as_caller(caller, asked))


@router.get("/devices/{device}/retirement")
async def get_retirement(device: str, _: Viewer, farm: Farm) -> RetirementPlan:
    """What retiring a phone would end."""
    return await farm.database.read_async(retirement_plan, device)


@router.post("/devices/{device}/retire")
async def post_retire(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Take a phone out of the farm; what waits for it is cancelled."""
    return await _changed(farm, retire, device, as_caller(caller, asked))


@router.post("/devices/{device}/label")
async def post_label(device: str, asked: LabelRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Name a phone."""
    return await _changed(farm, change_label, device, as_caller(caller, asked))


@router.post("/devices/{device}/tags")
async def post_tags(device: str, asked: TagRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Add and remove tags."""
    return await _changed(farm, change_tags, device, as_caller(caller, asked))


@router.post("/devices/{device}/hold")
async def post_reserve(device: str, asked: ReservationRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Take a phone out of the pool for a person."""
    return await _changed(farm, reserve, device, as_caller(caller, asked))


@router.post("/devices/{device}/release")
async def post_release(device: str, asked: ReleaseRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Give a phone back to the pool, by way of a check; or say that it is clean."""
    verb = assert_clean if asked.assert_clean else release
    return await _changed(farm, verb, device, as_caller(caller, asked))


@router.post("/devices/{device}/check")
async def post_check(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Have a phone checked before anything else."""
    return await _changed(farm, request_check, device, as_caller(caller, asked))


@router.post("/devices/{device}/accept")
async def post_rebaseline(
    device: str, asked: RebaselineRequest, caller: Operator, farm: Farm
) -> DeviceChange:
    """Take what a phone's golden run takes now for right: a band of its own begins."""
    return await _changed(farm, rebaseline, device, as_caller(caller, asked))


@router.get("/devices/{device}/adb")
async def get_adb(device: str, by: Annotated[Person, Query()], caller: Operator, farm: Farm) -> AdbAccess:
    """Where adb reaches a phone that the caller holds."""
    return await farm.database.read_async(adb_access, device, name_of(caller, by))


@router.post("/devices/{device}/identify", status_code=202)
async def post_identify(
    device: str, asked: OperatorRequest, caller: Operator, farm: Farm
) -> DeviceActionView:
    """Have a phone show what it is called, when it is free."""
    return await _changed(
        farm, request_device_action, device, DeviceActionKind.IDENTIFY, as_caller(caller, asked)
    )


@router.post("/devices/{device}/clean", status_code=202)
async def post_clean(device: str, asked: OperatorRequest, caller: Operator, farm: Farm) -> DeviceActionView:
    """Have what is left of runs ended and a phone's cache freed, when it is free."""
    return await _changed(
        farm, request_device_action, device, DeviceActionKind.CLEAN, as_caller(caller, asked)
    )


@router.post("/devices/{device}/check_settings", status_code=202)
async def post_check_settings(
    device: str, asked: OperatorRequest, caller: Operator, farm: Farm
) -> DeviceActionView:
    """Have a phone's settings looked at, when it is free."""
    return await _changed(
        farm, request_device_action, device, DeviceActionKind.CHECK_SETTINGS, as_caller(caller, asked)
    )


@router.post("/devices/{device}/set_up", status_code=202)
async def post_provision(
    device: str, asked: OperatorRequest, caller: Operator, farm: Farm
) -> DeviceActionView:
    """Have a phone's settings changed to what a shelf needs, when it is free."""
    return await _changed(
        farm, request_device_action, device, DeviceActionKind.PROVISION, as_caller(caller, asked)
    )


@router.post("/devices/{device}/undo_settings", status_code=202)
async def post_undo_settings(
    device: str, asked: OperatorRequest, caller: Operator, farm: Farm
) -> DeviceActionView:
    """Have what was changed of a phone's settings put back, when it is free."""
    return await _changed(
        farm, request_device_action, device, DeviceActionKind.RESTORE_SETTINGS, as_caller(caller, asked)
    )


@router.get("/errands/{errand_id}")
async def get_device_action_route(device_action_id: Count, _: Viewer, farm: Farm) -> DeviceActionView:
    """An errand and what came of it."""
    return await farm.database.read_async(get_device_action, device_action_id)


async def _changed(farm: Context, service: Callable[..., T], *what: object) -> T:
    """Run a verb, and have agents that wait look again."""
    return await farm.database.change_async(service, *what, now=farm.clock.now())
