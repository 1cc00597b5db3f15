"""Uploads over lines that break off, by several at once, and by those who send nonsense."""

import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from agents.attempts.artifact_cache import ArtifactCache
from agents.farm_api import FarmApi, farm_client
from farm.blobs.disk import DiskBlobs
from farm.client.farm_client import FarmClient
from farm.client.upload import CHUNK_BYTES, Upload
from farm.clock import SystemClock
from farm.core.base.ids import digest_of
from farm.core.errors import FarmUnreachable
from farm.services.files.retention import UPLOAD_MAX_AGE
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.faults.network_faults import cut_line

CONTENT = os.urandom(3 * CHUNK_BYTES + 17)
DIGEST = digest_of(CONTENT)
PATH = f"/api/v1/blobs/{DIGEST}"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data") as farm:
        yield farm


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.write_bytes(CONTENT)
    return path


def stored(farm: HttpFarm) -> bytes:
    return farm.http.get(PATH).content


def arrived(farm: HttpFarm) -> int:
    response = farm.http.head(PATH)
    assert response.status_code == 404
    return int(response.headers["Upload-Offset"])


def put(farm: HttpFarm, first: int, last: int, *, total: int = len(CONTENT), content: bytes = CONTENT) -> int:
    """Send a part; the status."""
    headers = {"Content-Range": f"bytes {first}-{last}/{total}"}
    return farm.http.put(PATH, content=content[first : last + 1], headers=headers).status_code


@pytest.mark.fault(45)
@pytest.mark.invariant("I5")
def test_an_upload_that_is_cut_at_80_percent_goes_on_there(farm: HttpFarm, path: Path) -> None:
    told: list[int] = []
    cut = len(CONTENT) * 8 // 10
    with cut_line(farm.url, cut) as (url, line), FarmClient(url) as client:
        client.upload(path, DIGEST, progress=told.append)
    assert stored(farm) == CONTENT
    assert line.carried_bytes < len(CONTENT) + 2 * CHUNK_BYTES
    assert sum(told) == len(CONTENT)


@pytest.mark.fault(45)
def test_a_line_that_breaks_again_and_again_carries_a_file_as_long_as_it_carries_more(
    farm: HttpFarm, path: Path
) -> None:
    cuts = [CHUNK_BYTES // 3] * 7
    with cut_line(farm.url, *cuts) as (url, _), FarmClient(url) as client:
        client.upload(path, DIGEST)
    assert stored(farm) == CONTENT


def test_a_farm_that_takes_nothing_is_given_up(path: Path) -> None:
    asked: list[str] = []

    def send(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        if request.method == "PUT":
            raise FarmUnreachable("the line is down")
        return httpx.Response(404, request=request)

    with httpx.Client(base_url="http://farm") as http, pytest.raises(FarmUnreachable):
        Upload(http=http, send=send, path=path, digest=DIGEST, retry_pauses_s=(0.0, 0.0)).run()
    assert asked == ["HEAD", "PUT"] * 3


def test_a_file_can_be_sent_in_parts_and_is_there_with_the_last(farm: HttpFarm) -> None:
    assert put(farm, 0, 99) == 202
    assert arrived(farm) == 100
    assert put(farm, 100, len(CONTENT) - 2) == 202
    assert put(farm, len(CONTENT) - 1, len(CONTENT) - 1) == 201
    assert stored(farm) == CONTENT


@pytest.mark.parametrize("first", [99, 101])
def test_a_part_that_does_not_begin_where_the_last_one_ended_is_refused(farm: HttpFarm, first: int) -> None:
    put(farm, 0, 99)
    headers = {"Content-Range": f"bytes {first}-200/{len(CONTENT)}"}
    refused = farm.http.put(PATH, content=CONTENT[first:201], headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "artifact.upload_interrupted")
    assert refused.json()["transient"]
    assert arrived(farm) == 100


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-0", slice(1)),
        ("bytes=5-9", slice(5, 10)),
        (f"bytes={len(CONTENT) - 1}-", slice(-1, None)),
        (f"bytes=7-{10**17}", slice(7, None)),
        ("bytes=-3", slice(-3, None)),
        (f"bytes=-{10**17}", slice(None)),
    ],
)
def test_one_part_of_a_file_can_be_asked_for(farm: HttpFarm, asked: str, part: slice) -> None:
    assert farm.http.put(PATH, content=CONTENT).status_code == 201
    answer = farm.http.get(PATH, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, CONTENT[part])


@pytest.mark.parametrize(
    ("asked", "status"),
    [(f"bytes={len(CONTENT)}-", 416), (f"bytes={10**17}-", 416), ("bytes=-0", 416), ("bytes=", 422)]
    + [(text, 422) for text in ("bytes=9-5", "bytes=-", "bytes=0-1,3-4", "lines=1-2", f"bytes={'9' * 40}-")],
)
def test_what_is_no_part_of_a_file_is_refused_with_a_problem(farm: HttpFarm, asked: str, status: int) -> None:
    assert farm.http.put(PATH, content=CONTENT).status_code == 201
    refused = farm.http.get(PATH, headers={"Range": asked})
    assert (refused.status_code, refused.json()["code"]) == (status, "input.invalid")
    if status == 416:
        assert refused.headers["Content-Range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.invariant("I5")
def test_parts_that_are_not_of_one_file_are_refused_and_leave_nothing(farm: HttpFarm) -> None:
    put(farm, 0, 99, content=bytes(len(CONTENT)))
    assert put(farm, 100, len(CONTENT) - 1) == 422
    assert arrived(farm) == 0


def test_the_client_begins_again_where_what_had_arrived_was_damaged(farm: HttpFarm, path: Path) -> None:
    put(farm, 0, 99, content=bytes(len(CONTENT)))
    with FarmClient(farm.url) as client:
        client.upload(path, DIGEST)
    assert stored(farm) == CONTENT


@pytest.mark.long
@pytest.mark.invariant("I5")
def test_two_that_send_one_file_at_the_same_time_do_not_hurt_each_other(farm: HttpFarm, path: Path) -> None:
    half_sent, go_on, statuses = threading.Event(), threading.Event(), list[int]()

    def slowly() -> Iterator[bytes]:
        yield CONTENT[:CHUNK_BYTES]
        half_sent.set()
        assert go_on.wait(30)
        yield CONTENT[CHUNK_BYTES:]

    slow = threading.Thread(target=lambda: statuses.append(farm.http.put(PATH, content=slowly()).status_code))
    slow.start()
    assert half_sent.wait(30)
    with FarmClient(farm.url) as client:
        client.upload(path, DIGEST)
    assert stored(farm) == CONTENT
    # Nor does another process of the farm that starts, or sweeps, meanwhile.
    assert DiskBlobs(farm.context.blobs.folder).expire_uploads(float("inf")) == []
    go_on.set()
    slow.join()
    assert statuses == [201]
    assert stored(farm) == CONTENT
    parts = farm.context.config.data_dir / "blobs" / "partial"
    assert [path for path in parts.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "text", ["", "bytes", "bytes 0-1/*", "bytes 5-4/10", "bytes 0-10/10", "bytes -1-2/3", "items 0-1/2", "٣"]
)
def test_a_range_that_is_none_is_refused(farm: HttpFarm, text: str) -> None:
    refused = farm.http.put(PATH, content=b"x", headers={"Content-Range": text.encode()})
    assert (refused.status_code, refused.json()["code"]) == (422, "input.invalid")


def test_more_than_a_part_says_is_refused_and_forgotten(farm: HttpFarm) -> None:
    headers = {"Content-Range": f"bytes 0-9/{len(CONTENT)}"}
    assert farm.http.put(PATH, content=CONTENT[:11], headers=headers).status_code == 413
    assert arrived(farm) == 0


def test_a_whole_that_is_too_large_is_refused_with_its_first_part(tmp_path: Path) -> None:
    with http_farm(tmp_path / "small", max_blob_bytes=100) as farm:
        assert put(farm, 0, 9, total=101) == 413
        assert arrived(farm) == 0


def test_what_no_one_goes_on_with_goes_with_the_next_sweep_after_a_day(farm: HttpFarm) -> None:
    put(farm, 0, 99)
    farm.http.post("/api/v1/storage/sweep")
    assert arrived(farm) == 100
    (part,) = (farm.context.blobs.folder / "partial").rglob(DIGEST)
    old_s = part.stat().st_mtime - (UPLOAD_MAX_AGE + timedelta(minutes=1)).total_seconds()
    os.utime(part, (old_s, old_s))
    assert farm.http.post("/api/v1/storage/sweep").json()["deleted_bytes"] == 100
    assert arrived(farm) == 0


@pytest.mark.fault(45)
def test_what_arrived_outlives_the_farm(tmp_path: Path) -> None:
    for folder in ("incoming", f"partial/{digest_of(b'user:ann')}"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / DIGEST).write_bytes(b"part")
    again = DiskBlobs(tmp_path)
    assert again.arrived_bytes("user:ann", DIGEST) == 4
    assert again.arrived_bytes("user:ben", DIGEST) == 0
    assert list((tmp_path / "incoming").iterdir()) == []


@pytest.mark.anyio
@pytest.mark.fault(45)
async def test_a_host_fetches_the_rest_of_a_file_whose_line_was_cut_at_80_percent(
    farm: HttpFarm, tmp_path: Path
) -> None:
    assert farm.http.put(PATH, content=CONTENT).status_code == 201
    with cut_line(farm.url, len(CONTENT) * 8 // 10, cuts_answers=True) as (url, _):
        async with farm_client(url) as http:
            cache = ArtifactCache(tmp_path / "cache", FarmApi(http), SystemClock(), limit_bytes=2**30)
            with pytest.raises(FarmUnreachable):
                await cache.fetch(DIGEST)
            (part,) = (tmp_path / "cache").iterdir()
            assert part.stat().st_size > len(CONTENT) // 2
            assert (await cache.fetch(DIGEST)).read_bytes() == CONTENT
