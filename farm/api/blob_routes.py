"""Artifacts by digest: model files and programs, to and from the farm."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from farm.api.bodies import announced_bytes
from farm.api.callers import Submitter, ViewerOrAgent
from farm.api.context import Context, Farm
from farm.core.errors import ArtifactMissing, NotFound, TooLarge
from farm.core.ids import Digest, HostId
from farm.core.role import Caller, Role
from farm.services.agent_files import check_needs
from farm.services.artifacts import get_artifact, keep_upload
from farm.services.registering import checked_digest

router = APIRouter(prefix="/api/v1/blobs")


@router.put("/{digest}", status_code=201)
async def put_blob(digest: str, request: Request, _: Submitter, farm: Farm) -> dict[str, int]:
    """Upload an artifact; its bytes must have the digest it is named by."""
    name = checked_digest(digest)
    announced = announced_bytes(request.headers) or 0
    if announced > farm.config.max_blob_bytes:
        raise TooLarge(f"{announced} bytes, an artifact has at most {farm.config.max_blob_bytes}")
    farm.blobs.check_room(announced)
    size_bytes = await farm.blobs.put_stream(request.stream(), name, limit_bytes=farm.config.max_blob_bytes)
    await farm.database.write_async(keep_upload, farm.blobs, name, size_bytes, now=farm.clock.now())
    return {"size_bytes": size_bytes}


@router.head("/{digest}")
async def head_blob(digest: str, caller: ViewerOrAgent, farm: Farm) -> Response:
    """Whether the farm has an artifact."""
    await _blob_path(farm, caller, checked_digest(digest))
    return Response()


@router.get("/{digest}")
async def get_blob(digest: str, caller: ViewerOrAgent, farm: Farm) -> FileResponse:
    """An artifact's bytes; 410 when the farm had them and let them go."""
    path = await _blob_path(farm, caller, checked_digest(digest))
    return FileResponse(path, media_type="application/octet-stream")


async def _blob_path(farm: Context, caller: Caller, digest: Digest) -> str:
    if caller.role is Role.AGENT:
        await farm.database.read_async(check_needs, HostId(caller.name), digest)
    await farm.database.read_async(get_artifact, digest)
    if farm.blobs.size_bytes(digest) is None:
        # The next sweep says so in the row, too.
        raise NotFound(f"artifact {digest} is gone from the farm's disk", hint=ArtifactMissing.default_hint)
    return str(farm.blobs.path(digest))
