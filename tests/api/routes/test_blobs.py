"""A file that is swept while somebody fetches it: all of it comes, or a reason, and never a bug."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from farm.api.routes.files import get_blob
from farm.client.upload import Upload
from farm.core.base.ids import digest_of
from farm.core.operations.role import Caller, Role
from tests.api.routes.test_all_routes import refused, upload
from tests.support.farm.http_farm import HttpFarm, http_farm

CONTENT = b"a file nobody needs" * 10_000
DIGEST = digest_of(CONTENT)
PATH = f"/api/v1/blobs/{DIGEST}"
ANN = Caller(name="ann", role=Role.VIEWER, is_authenticated=True)

pytestmark = pytest.mark.anyio


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path) as served:
        assert upload(served, CONTENT).status_code == 201
        yield served


class Line:
    """What a server sends of an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    async def receive(self) -> Any:
        """Whoever asked stays on the line."""
        return await asyncio.Event().wait()


async def fetched_over_a_sweep(farm: HttpFarm, **headers: str) -> Line:
    """An answer between whose beginning and whose sending the file is swept."""
    told = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": PATH, "headers": told}
    line = Line()
    answer = await get_blob(DIGEST, Request(scope), ANN, farm.context)
    assert farm.context.blobs.set_aside(DIGEST, farm.context.clock.now())
    assert farm.context.blobs.empty_trash(float("inf")) == [len(CONTENT)]
    await answer(scope, line.receive, line.send)
    return line


async def test_a_file_that_is_swept_before_it_is_sent_is_sent_whole(farm: HttpFarm) -> None:
    line = await fetched_over_a_sweep(farm)
    assert (line.status, line.body) == (200, CONTENT)


async def test_a_part_of_it_is_sent_too(farm: HttpFarm) -> None:
    line = await fetched_over_a_sweep(farm, range="bytes=10-19")
    assert (line.status, line.body) == (206, CONTENT[10:20])


def test_a_file_that_is_gone_before_anybody_looks_is_a_problem_with_a_code(farm: HttpFarm) -> None:
    farm.context.blobs.set_aside(DIGEST, farm.context.clock.now())
    refused(farm.http.get(PATH), 404, "not_found")
    assert farm.http.head(PATH).status_code == 404


def flip_a_bit(farm: HttpFarm) -> None:
    path = farm.context.blobs.path(DIGEST)
    path.write_bytes(CONTENT[:-1] + b"!")


async def test_a_damaged_file_is_not_sent_to_its_end_and_expires(farm: HttpFarm) -> None:
    flip_a_bit(farm)
    scope = {"type": "http", "method": "GET", "path": PATH, "headers": []}
    line = Line()
    answer = await get_blob(DIGEST, Request(scope), ANN, farm.context)
    await answer(scope, line.receive, line.send)
    assert len(line.body) < len(CONTENT)
    refused(farm.http.get(PATH), 410, "artifact.expired")


@pytest.mark.parametrize("damage", [CONTENT[:-1] + b"!", CONTENT[:-1], b""])
def test_sending_a_damaged_file_again_mends_it(farm: HttpFarm, tmp_path: Path, damage: bytes) -> None:
    farm.context.blobs.path(DIGEST).write_bytes(damage)
    file = tmp_path / "model"
    file.write_bytes(CONTENT)
    with httpx.Client(base_url=f"{farm.url}/api/v1") as http:
        Upload(http=http, send=http.send, path=file, digest=DIGEST).run()
    assert farm.http.get(PATH).content == CONTENT
    assert farm.http.head(PATH).status_code == 200


def test_a_file_of_another_size_is_not_there(farm: HttpFarm) -> None:
    farm.context.blobs.path(DIGEST).write_bytes(CONTENT[:-1])
    refused(farm.http.get(PATH, headers={"Range": "bytes=0-3"}), 410, "artifact.expired")
