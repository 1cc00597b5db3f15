"""Routes for devices: list, administer, reserve and maintain them."""

from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Viewer, as_caller, name_of
from farm.api.http.pages import AfterName, ListPageSize
from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent
from farm.core.upkeep.device_action import DeviceActionKind
from farm.services.checks.device_detail import device_detail
from farm.services.checks.requested import assert_clean, rebaseline, request_check
from farm.services.devices.admin import change_admin, change_label, change_tags, retire, retirement_plan
from farm.services.devices.reservations import adb_access, release, reserve
from farm.services.devices.views import list_device_views, selected_devices
from farm.services.operations.usage import usage_in_week
from farm.services.upkeep.device_actions import get_device_action, request_device_action
from farm.wire.base import MAX_LIST_PAGE, MAX_SELECTOR_CHARS, MAX_SELECTORS, Count
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
    UsageView,
)

router = APIRouter(prefix="/api/v1")


@router.get("/devices")
async def get_devices(
    _: Viewer, farm: Farm, after: AfterName = "", limit: ListPageSize = MAX_LIST_PAGE
) -> list[DeviceView]:
    """Return a page of the devices, in the order of their ids; a page that is not full is the last."""
    return await farm.database.read_async(list_device_views, after=DeviceId(after), limit=limit)


@router.get("/device_selection")
async def get_selection(
    _: Viewer,
    farm: Farm,
    selector: Annotated[
        list[Annotated[str, Query(max_length=MAX_SELECTOR_CHARS)]],
        Query(
            max_length=MAX_SELECTORS,
            description="Like `soc:SM8* android:>=14`, or a name: an id, a label or a device model.",
        ),
    ],
) -> list[DeviceId]:
    """Return the ids of the devices that fit any of the selectors, with the rules of a matrix."""
    return await farm.database.read_async(selected_devices, selector)


@router.get("/device_usage")
async def get_usage(
    _: Viewer, farm: Farm, week: Annotated[str | None, Query(description="An ISO week: 2026-W47.")] = None
) -> UsageView:
    """Return for what the time of the devices went in a week."""
    return await farm.database.read_async(usage_in_week, week, now=farm.clock.now())


@router.get("/devices/{device}")
async def get_device(device: str, _: Viewer, farm: Farm) -> DeviceDetail:
    """Return one device by its id, its label, or a unique prefix of either."""
    return await farm.database.read_async(device_detail, device)


@router.post("/devices/{device}/admit")
async def post_admit(device: str, request: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Admit a new or retired device to the pool."""
    return await farm.change(change_admin, device, AdminEvent.ADMITTED, as_caller(caller, request))


@router.post("/devices/{device}/cordon")
async def post_cordon(device: str, request: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Stop giving a device work; its queue stays."""
    return await farm.change(change_admin, device, AdminEvent.CORDONED, as_caller(caller, request))


@router.post("/devices/{device}/uncordon")
async def post_uncordon(device: str, request: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Give a cordoned device work again."""
    return await farm.change(change_admin, device, AdminEvent.UNCORDONED, as_caller(caller, request))


@router.get("/devices/{device}/retirement")
async def get_retirement(device: str, _: Viewer, farm: Farm) -> RetirementPlan:
    """Return what retiring a device would cancel."""
    return await farm.database.read_async(retirement_plan, device)


@router.post("/devices/{device}/retire")
async def post_retire(device: str, request: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Remove a device from the farm and cancel its queued jobs."""
    return await farm.change(retire, device, as_caller(caller, request))


@router.post("/devices/{device}/label")
async def post_label(device: str, request: LabelRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Set or clear the label of a device."""
    return await farm.change(change_label, device, as_caller(caller, request))


@router.post("/devices/{device}/tags")
async def post_tags(device: str, request: TagRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Add and remove tags of a device."""
    return await farm.change(change_tags, device, as_caller(caller, request))


@router.post("/devices/{device}/reserve")
async def post_reserve(
    device: str, request: ReservationRequest, caller: Operator, farm: Farm
) -> DeviceChange:
    """Reserve a device for a person."""
    return await farm.change(reserve, device, as_caller(caller, request))


@router.post("/devices/{device}/release")
async def post_release(device: str, request: ReleaseRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Release a reservation, followed by a check; or assert that the device is clean."""
    verb = assert_clean if request.assert_clean else release
    return await farm.change(verb, device, as_caller(caller, request))


@router.post("/devices/{device}/check")
async def post_check(device: str, request: OperatorRequest, caller: Operator, farm: Farm) -> DeviceChange:
    """Request a check ahead of all queued jobs of a device."""
    return await farm.change(request_check, device, as_caller(caller, request))


@router.post("/devices/{device}/rebaseline")
async def post_rebaseline(
    device: str, request: RebaselineRequest, caller: Operator, farm: Farm
) -> DeviceChange:
    """Begin a new reference range for a device, from its latest reference run on."""
    return await farm.change(rebaseline, device, as_caller(caller, request))


@router.get("/devices/{device}/adb")
async def get_adb(device: str, by: Annotated[Person, Query()], caller: Operator, farm: Farm) -> AdbAccess:
    """Return the adb address of a device that the caller has reserved."""
    return await farm.database.read_async(adb_access, device, name_of(caller, by))


_ACTIONS = {
    DeviceActionKind.IDENTIFY: "Have a device show its name",
    DeviceActionKind.CLEAN: "Have left-over processes ended and the cache of a device emptied",
    DeviceActionKind.CHECK_SETTINGS: "Have the settings of a device checked",
    DeviceActionKind.PROVISION: "Have the settings of a device changed to the device settings profile",
    DeviceActionKind.RESTORE_SETTINGS: "Have the original settings of a device restored",
}


def _add_action_route(kind: DeviceActionKind, purpose: str) -> None:
    name, description = f"post_{kind}", f"{purpose}, when it is free."

    @router.post(f"/devices/{{device}}/{kind}", status_code=202, name=name, description=description)
    async def post_action(
        device: str, request: OperatorRequest, caller: Operator, farm: Farm
    ) -> DeviceActionView:
        return await farm.change(request_device_action, device, kind, as_caller(caller, request))


for _kind, _purpose in _ACTIONS.items():
    _add_action_route(_kind, _purpose)


@router.get("/device_actions/{device_action_id}")
async def get_device_action_route(device_action_id: Count, _: Viewer, farm: Farm) -> DeviceActionView:
    """Return a device action and its result."""
    return await farm.database.read_async(get_device_action, device_action_id)
