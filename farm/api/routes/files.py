"""Artifacts by digest, harnesses with their programs, and the storage they take."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Submitter, Viewer, ViewerOrAgent, telling_refusal
from farm.api.http.problems import status_of
from farm.api.http.request_bodies import content_length
from farm.core.base.ids import Digest, HostId
from farm.core.errors import ArtifactExpired, ArtifactMissing, InputTooLarge, NotFound, UploadInterrupted
from farm.core.operations.role import Caller, Role, is_permitted
from farm.services.agents.exchange.answer import check_file_is_needed
from farm.services.files.artifacts import (
    check_quota,
    get_artifact,
    record_upload,
    set_aside_unreferenced,
)
from farm.services.files.programs import (
    check_may_register,
    harness_view,
    inspect_program,
    list_adapters,
    list_program_views,
    register_program,
)
from farm.services.files.registration import parse_digest
from farm.services.files.retention import sweep_storage
from farm.services.files.storage import storage_view
from farm.services.files.stored_files import remove_file, remove_upload, stored_files
from farm.services.files.verification import expire_if_damaged
from farm.services.operations.history_retention import count_old_history
from farm.wire.content_range import OFFSET_HEADER, ContentRange, content_range, is_within
from farm.wire.documents.files.programs import (
    AdapterView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    RegisteredProgramView,
)
from farm.wire.documents.files.storage import FileRemoval, StorageView, StoredFilesView, SweepResult

#: Files that one answer lists.
_MAX_FILES = 1000

router = APIRouter(prefix="/api/v1")


@router.put("/blobs/{digest}", status_code=201)
async def put_blob(
    digest: str, request: Request, response: Response, caller: Submitter, farm: Farm
) -> dict[str, int]:
    """Upload an artifact, or with `Content-Range` a part; the bytes must have the digest they are named by.

    An upload that breaks off can be gone on with by who began it: HEAD says in `Upload-Offset` how much
    arrived. 202 says that more is to come.
    """
    name, limit_bytes = parse_digest(digest), farm.config.max_blob_bytes
    part = _part(request.headers)
    announced = part.total_bytes if part else content_length(request.headers) or 0
    if announced > limit_bytes:
        raise InputTooLarge(f"{announced} bytes, an artifact has at most {limit_bytes}")
    quota = None if is_permitted(caller.role, Role.OPERATOR) else farm.config.stored_bytes_per_person
    if quota is not None:
        check = partial(check_quota, blobs=farm.blobs, actor=caller.actor, most_bytes=quota)
        await farm.database.peek_async(check, digest=name, size_bytes=announced)
    farm.blobs.check_space(announced - (part.first if part else 0))
    size_bytes = await farm.blobs.put_stream(
        _body(request), name, uploader=caller.actor, limit_bytes=limit_bytes, part=part
    )
    if size_bytes is None:
        arrived = farm.blobs.arrived_bytes(caller.actor, name)
        response.status_code, response.headers[OFFSET_HEADER] = 202, str(arrived)
        return {"size_bytes": arrived}
    record = farm.bind(record_upload, actor=caller.actor)
    await farm.database.write_async(record, farm.blobs, name, size_bytes, most_bytes=quota)
    return {"size_bytes": size_bytes}


@router.head("/blobs/{digest}")
async def head_blob(digest: str, caller: ViewerOrAgent, farm: Farm) -> Response:
    """Return whether the farm has an artifact; if not, `Upload-Offset` says how much of an upload arrived.

    Its bytes are read and verified: an upload replaces a damaged file.
    """
    name = parse_digest(digest)
    try:
        (await _blob(farm, caller, name)).close()
        if await _expire_if_damaged(farm, name):
            (await _blob(farm, caller, name)).close()
    except NotFound as error:
        arrived = str(farm.blobs.arrived_bytes(caller.actor, name))
        return Response(status_code=status_of(error), headers={OFFSET_HEADER: arrived})
    return Response()


@router.get("/blobs/{digest}")
async def get_blob(digest: str, request: Request, caller: ViewerOrAgent, farm: Farm) -> FileResponse:
    """Return an artifact's bytes, or with `Range` one part; 410 when they expired."""
    name = parse_digest(digest)
    file = await _blob(farm, caller, name)
    with ExitStack() as refused:
        refused.enter_context(file)
        _check_range(request.headers, os.fstat(file.fileno()).st_size)
        # From here on the response closes it.
        refused.pop_all()
    return OpenFileResponse(file, name, lambda: _expire_if_damaged(farm, name))


async def _expire_if_damaged(farm: Context, digest: Digest) -> bool:
    return await asyncio.to_thread(expire_if_damaged, farm.database, farm.blobs, farm.clock, digest)


async def _blob(farm: Context, caller: Caller, digest: Digest) -> BinaryIO:
    if caller.role is Role.AGENT:
        await farm.database.peek_async(check_file_is_needed, HostId(caller.name), digest)
    artifact = await farm.database.peek_async(get_artifact, digest)
    if farm.blobs.size_bytes(digest) not in (None, artifact.size_bytes):
        await _expire_if_damaged(farm, digest)
        await farm.database.peek_async(get_artifact, digest)
    file = farm.blobs.find(digest)
    if file is None:
        # The next sweep says so in the row, too.
        raise NotFound(f"artifact {digest} is gone from the farm's disk", hint=ArtifactMissing.default_hint)
    return file


def _part(headers: Headers) -> ContentRange | None:
    text = headers.get("content-range")
    return None if text is None else content_range(text)


def _check_range(headers: Headers, size_bytes: int) -> None:
    """Check the range here: the response would refuse in plain text, and take any number of ranges."""
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
    """Return the harnesses with an adapter of the farm's own, and the ABIs it has programs for."""
    return await farm.database.read_async(list_adapters)


@router.get("/harnesses")
async def get_programs(_: Viewer, farm: Farm) -> list[ProgramView]:
    """Return every registered program, by when it was last registered."""
    return await farm.database.read_async(list_program_views)


@router.get("/harnesses/{name:path}")
async def get_harness(name: str, _: Viewer, farm: Farm) -> HarnessView:
    """Return one harness with its options and programs."""
    return await farm.database.read_async(harness_view, name)


@router.post("/harnesses", status_code=201)
async def post_program(
    registration: ProgramRegistration, request: Request, caller: Submitter, farm: Farm
) -> RegisteredProgramView:
    """Register a program whose files were uploaded before; again is no error, and puts it back in use.

    A name that all share takes an operator; a submitter registers in the name space of their own name.
    """
    async with telling_refusal(request, caller, farm):
        check_may_register(caller, registration.name)
    inspection = await asyncio.to_thread(inspect_program, registration, farm.blobs)
    return await farm.database.write_async(farm.bind(register_program, actor=caller.actor), inspection)


@router.get("/storage")
async def get_storage(_: Viewer, farm: Farm) -> StorageView:
    """Return the use of storage, the limits in force, and what the next sweep would do."""
    return await asyncio.to_thread(_storage, farm)


@router.get("/storage/files")
async def get_stored_files(
    caller: Viewer,
    farm: Farm,
    person: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_FILES)] = _MAX_FILES,
) -> StoredFilesView:
    """Return the files that the caller, or a person, uploaded, the largest first, and their quota."""
    name = person or caller.name
    has_quota = name != caller.name or not is_permitted(caller.role, Role.OPERATOR)
    quota = farm.config.stored_bytes_per_person if has_quota else None
    return await farm.database.read_async(
        stored_files, farm.blobs, person=name, quota_bytes=quota, limit=limit
    )


@router.delete("/storage/files/{digest}")
async def delete_stored_file(digest: str, request: Request, caller: Submitter, farm: Farm) -> FileRemoval:
    """Remove a file that the caller uploaded, or what has arrived of it; an admin may remove anyone's.

    What an unfinished matrix needs is refused. Measurements stay, and sending the file again restores it.
    """
    name = parse_digest(digest)
    try:
        async with telling_refusal(request, caller, farm):
            removal = await farm.database.write_async(
                farm.bind(remove_file, actor=caller.actor), name, caller
            )
    except (NotFound, ArtifactExpired):
        arrived = await asyncio.to_thread(remove_upload, farm.blobs, name, caller)
        if arrived is None:
            raise
        return arrived
    await farm.database.write_async(farm.bind(set_aside_unreferenced), farm.blobs, [name])
    return removal


@router.post("/storage/sweep")
async def post_sweep(_: Operator, farm: Farm) -> SweepResult:
    """Enforce the limits now, as the farm does automatically every few minutes."""
    rules = farm.config.storage_rules
    return await asyncio.to_thread(sweep_storage, farm.database, farm.blobs, rules, farm.clock)


def _storage(farm: Context) -> StorageView:
    rules = farm.config.storage_rules
    keep = rules.history_keep
    old_history = {} if keep is None else count_old_history(farm.database, farm.clock, keep)
    return farm.database.read(
        farm.bind(storage_view),
        rules=rules,
        old_history=old_history,
        data_dir=farm.config.data_dir.resolve(),
        blobs=farm.blobs,
        on_disk=farm.blobs.digests(),
        trash=farm.blobs.trash(),
    )


class OpenFileResponse(FileResponse):
    """As its parent, which opens a file by its name only when it begins to send.

    A file that is sent as a whole is verified on the way. One with another digest is not sent to its end: its
    reader sees a broken connection, not a complete file.
    """

    def __init__(self, file: BinaryIO, digest: Digest, on_damage: Callable[[], Awaitable[object]]) -> None:
        """The file is closed once it is sent. `on_damage` is called when its bytes have another digest."""
        # Whatever becomes of its name, a file that is open can be opened again by its number.
        super().__init__(
            f"/dev/fd/{file.fileno()}",
            media_type="application/octet-stream",
            stat_result=os.fstat(file.fileno()),
        )
        self._file = file
        self._digest = digest
        self._on_damage = on_damage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hasher, is_whole = sha256(), False

        async def send_verified(message: Message) -> None:
            nonlocal is_whole
            if message["type"] == "http.response.start":
                is_whole = message["status"] == 200
            elif is_whole:
                hasher.update(message.get("body", b""))
                if not message.get("more_body", False) and hasher.hexdigest() != self._digest:
                    await self._on_damage()
                    return
            await send(message)

        with self._file:
            await super().__call__(scope, receive, send_verified)
