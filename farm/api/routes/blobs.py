"""Artifacts by digest: model files and programs, to and from the farm."""

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
from farm.api.http.authorization import Submitter, ViewerOrAgent
from farm.api.http.open_file_response import OpenFileResponse
from farm.api.http.problems import status_of
from farm.api.http.request_bodies import content_length
from farm.core.base.ids import Digest, HostId
from farm.core.errors import ArtifactMissing, InputTooLarge, NotFound, UploadInterrupted
from farm.core.operations.role import Caller, Role
from farm.services.agents.file_access import check_file_is_needed
from farm.services.files.artifacts import get_artifact, record_upload
from farm.services.files.registration import parse_digest
from farm.wire.content_range import OFFSET_HEADER, ContentRange, content_range, is_within

router = APIRouter(prefix="/api/v1/blobs")


@router.put("/{digest}", status_code=201)
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


@router.head("/{digest}")
async def head_blob(digest: str, caller: ViewerOrAgent, farm: Farm) -> Response:
    """Whether the farm has an artifact; if not, `Upload-Offset` says how much of an upload arrived."""
    name = parse_digest(digest)
    try:
        (await _blob(farm, caller, name)).close()
    except NotFound as error:
        arrived = str(farm.blobs.arrived_bytes(name))
        return Response(status_code=status_of(error), headers={OFFSET_HEADER: arrived})
    return Response()


@router.get("/{digest}")
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
