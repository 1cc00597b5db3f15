"""Harnesses and their programs."""

import asyncio

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Submitter, Viewer
from farm.services.files.programs import (
    harness_view,
    inspect_program,
    list_adapters,
    list_program_views,
    register_program,
)
from farm.wire.documents.files.programs import (
    AdapterView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    RegisteredProgramView,
)

router = APIRouter(prefix="/api/v1")


@router.get("/adapters")
async def get_adapters(_: Viewer, farm: Farm) -> list[AdapterView]:
    """The harnesses that the farm can read by itself, and for which ABIs it has a program of theirs."""
    return await farm.database.read_async(list_adapters)


@router.get("/harnesses")
async def get_programs(_: Viewer, farm: Farm) -> list[ProgramView]:
    """Every registered program, by when it was last registered."""
    return await farm.database.read_async(list_program_views)


@router.get("/harnesses/{name}")
async def get_harness(name: str, _: Viewer, farm: Farm) -> HarnessView:
    """One harness: what it offers, and its programs."""
    return await farm.database.read_async(harness_view, name)


@router.post("/harnesses", status_code=201)
async def post_program(
    registration: ProgramRegistration, caller: Submitter, farm: Farm
) -> RegisteredProgramView:
    """Register a program whose files were uploaded before; again is no error, and puts it back in use."""
    inspection = await asyncio.to_thread(inspect_program, registration, farm.blobs)
    return await farm.database.write_async(
        register_program, inspection, now=farm.clock.now(), actor=caller.actor
    )
