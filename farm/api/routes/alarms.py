"""What people and scripts call about alarms."""

from typing import Annotated

from fastapi import APIRouter, Query

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Viewer, as_caller
from farm.services.operations.alarm_views import clear_by_operator, list_alarms
from farm.wire.base import Count
from farm.wire.documents.alarms import AlarmView, ClearRequest

router = APIRouter(prefix="/api/v1/alarms")


@router.get("")
async def get_alarms(
    _: Viewer,
    farm: Farm,
    cleared: Annotated[bool, Query(description="The newest, cleared ones too.")] = False,
) -> list[AlarmView]:
    """What somebody should see to, the oldest first; with `cleared` the newest of all."""
    return await farm.database.read_async(list_alarms, cleared=cleared)


@router.post("/{alarm_id}/clear")
async def post_clear(alarm_id: Count, asked: ClearRequest, caller: Operator, farm: Farm) -> AlarmView:
    """Say that an alarm is seen to; where it lasts, it is raised again after a day."""
    request = as_caller(caller, asked)
    return await farm.database.change_async(clear_by_operator, alarm_id, request, now=farm.clock.now())
