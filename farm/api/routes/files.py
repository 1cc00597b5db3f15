"""Artifacts by digest, harnesses with their programs, and the storage they take."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import BinaryIO

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Submitter, Viewer, ViewerOrAgent
from farm.api.http.open_file_response import OpenFileResponse
from farm.api.http.problems import status_of
from farm.api.http.request_bodies import content_length
from farm.core.base.ids import Digest, HostId
from farm.core.errors import ArtifactMissing, InputTooLarge, NotFound, UploadInterrupted
from farm.core.operations.role import Caller, Role
from farm.services.agents.file_access import check_file_is_needed
from farm.services.files.artifacts import get_artifact, record_upload
from farm.services.files.programs import (
    harness_view,
    inspect_program,
    list_adapters,
    list_program_views,
    register_program,
)
from farm.services.files.registration import parse_digest
from farm.services.files.retention import sweep_storage
from farm.services.files.storage import storage_view
from farm.wire.content_range import OFFSET_HEADER, ContentRange, content_range, is_within
from farm.wire.documents.files.programs import (
    AdapterView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    RegisteredProgramView,
)
from farm.wire.documents.files.storage import StorageView, SweepView

router = APIRouter(prefix="/api/v1")


@router.put("/blobs/{digest}", status_code=201)
async def put_blob(
    digest: str, request: Request, response: Response, _: Submitter, farm: Farm
) -> dict[str, int]:
    """Upload an artifact, or with `Content-Range` a part; the bytes must have the digest they are named by.

    An upload that breaks off can be gone on with: HEAD says in `Upload-Offset` how much arrived. 202 says
    that more is to come.
    """
    name, limit_bytes = parse_digest(digest), farm.config.max_blob_bytes
    part = _part(request.headers)
    announced = part.total_bytes if part else content_length(request.headers) or 0
    if announced > limit_bytes:
        raise InputTooLarge(f"{announced} bytes, an artifact has at most {limit_bytes}")
    farm.blobs.check_space(announced - (part.first if part else 0))
    size_bytes = await farm.blobs.put_stream(_body(request), name, limit_bytes=limit_bytes, part=part)
    if size_bytes is None:
        arrived = farm.blobs.arrived_bytes(name)
        response.status_code, response.headers[OFFSET_HEADER] = 202, str(arrived)
        return {"size_bytes": arrived}
    await farm.database.write_async(record_upload, farm.blobs, name, size_bytes, now=farm.clock.now())
    return {"size_bytes": size_bytes}


@router.head("/blobs/{digest}")
async def head_blob(digest: str, caller: ViewerOrAgent, farm: Farm) -> Response:
    """Whether the farm has an artifact; if not, `Upload-Offset` says how much of an upload arrived."""
    name = parse_digest(digest)
    try:
        (await _blob(farm, caller, name)).close()
    except NotFound as error:
        arrived = str(farm.blobs.arrived_bytes(name))
        return Response(status_code=status_of(error), headers={OFFSET_HEADER: arrived})
    return Response()


@router.get("/blobs/{digest}")
async def get_blob(digest: str, request: Request, caller: ViewerOrAgent, farm: Farm) -> FileResponse:
    """An artifact's bytes, or with `Range` one part; 410 when the farm had them and let them go."""
    file = await _blob(farm, caller, parse_digest(digest))
    with ExitStack() as refused:
        refused.enter_context(file)
        _check_range(request.headers, os.fstat(file.fileno()).st_size)
        # From here on the response closes it.
        refused.pop_all()
    return OpenFileResponse(file)


async def _blob(farm: Context, caller: Caller, digest: Digest) -> BinaryIO:
    if caller.role is Role.AGENT:
        await farm.database.read_async(check_file_is_needed, HostId(caller.name), digest)
    await farm.database.read_async(get_artifact, digest)
    file = farm.blobs.find(digest)
    if file is None:
        # The next sweep says so in the row, too.
        raise NotFound(f"artifact {digest} is gone from the farm's disk", hint=ArtifactMissing.default_hint)
    return file


def _part(headers: Headers) -> ContentRange | None:
    text = headers.get("content-range")
    return None if text is None else content_range(text)


def _check_range(headers: Headers, size_bytes: int) -> None:
    """The response would refuse in plain text, and take any number of ranges."""
    text = headers.get("range")
    if text is not None and not is_within(text, size_bytes):
        detail = f"the file has {size_bytes} bytes, and none that was asked for"
        raise HTTPException(416, detail, headers={"Content-Range": f"bytes */{size_bytes}"})


async def _body(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise UploadInterrupted("the connection broke off") from error


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


@router.get("/storage")
async def get_storage(_: Viewer, farm: Farm) -> StorageView:
    """What takes how much, the limits in force, and what the next sweep would do."""
    return await asyncio.to_thread(_storage, farm)


@router.post("/storage/sweep")
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
