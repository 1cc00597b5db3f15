"""What takes the farm's room, and how to get some back."""

import asyncio

from fastapi import APIRouter

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Viewer
from farm.services.files.retention import sweep_storage
from farm.services.files.storage import storage_view
from farm.wire.documents.files.storage import StorageView, SweepView

router = APIRouter(prefix="/api/v1/storage")


@router.get("")
async def get_storage(_: Viewer, farm: Farm) -> StorageView:
    """What takes how much, the limits in force, and what the next sweep would do."""
    return await asyncio.to_thread(_storage, farm)


@router.post("/sweep")
async def post_sweep(_: Operator, farm: Farm) -> SweepView:
    """Enforce the limits now, as the farm does by itself every few minutes."""
    rules = farm.config.storage_rules
    swept = await asyncio.to_thread(sweep_storage, farm.database, farm.blobs, rules, farm.clock)
    return SweepView.model_validate(swept, from_attributes=True)


def _storage(farm: Context) -> StorageView:
    return farm.database.read(
        storage_view,
        rules=farm.config.storage_rules,
        data_dir=farm.config.data_dir.resolve(),
        disk_free_bytes=farm.blobs.free_bytes(),
        on_disk=list(farm.blobs.files()),
        now=farm.clock.now(),
    )
