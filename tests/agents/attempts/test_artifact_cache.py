"""The host's cache within its limit: what goes first, and what never does."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from agents.attempts.artifact_cache import ArtifactCache, ArtifactPrefetcher
from agents.farm_api import FarmApi
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import FarmFault, FarmUnreachable, HostDiskFull
from tests.support.fake_clock import FakeClock
from tests.support.faults.disk_faults import SmallDisk, small_disk

pytestmark = pytest.mark.anyio

CONTENTS = [bytes([letter]) * 100 for letter in b"abcd"]
A, B, C, D = map(digest_of, CONTENTS)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class Host:
    """A cache with room for two files, and the farm that has four."""

    def __init__(self, folder: Path, *, limit_bytes: int = 250) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.asked: list[Digest] = []
        self.held: set[Digest] = set()
        self.limit_bytes = limit_bytes
        self.blobs = self.restarted()

    def restarted(self) -> ArtifactCache:
        http = httpx.AsyncClient(base_url="http://farm", transport=httpx.MockTransport(self._serve))
        self.blobs = ArtifactCache(
            self.folder,
            FarmApi(http),
            self.clock,
            limit_bytes=self.limit_bytes,
            needed_digests=lambda: self.held,
        )
        return self.blobs

    def _serve(self, request: httpx.Request) -> httpx.Response:
        digest = Digest(request.url.path.rpartition("/")[2])
        self.asked.append(digest)
        return httpx.Response(200, content=next(each for each in CONTENTS if digest_of(each) == digest))

    async def fetch(self, *digests: Digest) -> None:
        for digest in digests:
            self.clock.advance(1)
            await self.blobs.fetch(digest)

    @property
    def there(self) -> set[str]:
        return names_in(self.folder)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "cache")


async def test_what_was_not_used_for_longest_goes_first(host: Host) -> None:
    await host.fetch(A, B, A, C)
    assert host.there == {A, C}


async def test_a_file_that_an_active_attempt_needs_stays_whatever_the_limit(host: Host) -> None:
    host.held = {A, B}
    await host.fetch(A, B, C, D)
    assert host.there == {A, B, D}
    host.held = set()
    await host.fetch(C)
    assert host.there == {C, D}


async def test_what_was_fetched_for_the_next_job_stays_until_others_come_next(host: Host) -> None:
    async with asyncio.TaskGroup() as tasks:
        prefetch = ArtifactPrefetcher(artifacts=host.blobs, is_disturbing=lambda: False, tasks=tasks)
        prefetch.prefetch([A])
    await host.fetch(B, C, D)
    assert A in host.there
    async with asyncio.TaskGroup() as tasks:
        ArtifactPrefetcher(artifacts=host.blobs, is_disturbing=lambda: True, tasks=tasks).prefetch([B])
    await host.fetch(C)
    assert A not in host.there


@pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
async def test_the_order_of_use_survives_clocks_that_jump_and_restarts(host: Host, jump_s: float) -> None:
    await host.fetch(A, B)
    host.clock.advance(jump_s)
    host.restarted()
    await host.fetch(A)
    host.clock.advance(-2 * jump_s)
    await host.fetch(C)
    assert host.there == {A, C}


async def test_what_was_trimmed_is_fetched_again(host: Host) -> None:
    await host.fetch(A, B, C, A)
    assert host.asked == [A, B, C, A]
    assert (host.folder / A).read_bytes() == CONTENTS[0]


async def test_a_file_that_is_being_fetched_is_not_trimmed(host: Host) -> None:
    host.limit_bytes = 1
    host.restarted()
    paths = await asyncio.gather(*(host.blobs.fetch(digest) for digest in (A, B)))
    assert any(path.exists() for path in paths)
    assert host.there <= {A, B}


async def test_files_that_are_not_the_caches_own_are_left_alone(host: Host) -> None:
    (host.folder / "notes.txt").write_bytes(b"x" * 1000)
    await host.fetch(A, B)
    assert host.there == {"notes.txt", A, B}


@pytest.mark.fault(45)
@pytest.mark.parametrize("knows_ranges", [True, False])
async def test_a_download_that_broke_off_goes_on_where_it_ended_if_the_farm_can(
    tmp_path: Path, knows_ranges: bool
) -> None:
    asked: list[str | None] = []

    def breaks_once(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("Range"))
        if len(asked) == 1:
            return httpx.Response(200, content=_half())
        if knows_ranges and asked[-1] is not None:
            return httpx.Response(206, content=CONTENTS[0][50:])
        return httpx.Response(200, content=CONTENTS[0])

    cache = cache_of(tmp_path, breaks_once)
    with pytest.raises(FarmUnreachable):
        await cache.fetch(A)
    assert A not in names_in(tmp_path)
    assert (await cache.fetch(A)).read_bytes() == CONTENTS[0]
    assert asked == [None, "bytes=50-"]


@pytest.mark.fault(45)
async def test_a_part_that_was_damaged_is_fetched_again(tmp_path: Path) -> None:
    def whole(request: httpx.Request) -> httpx.Response:
        rest = CONTENTS[0][7:]
        return httpx.Response(206, content=rest) if "Range" in request.headers else _whole()

    cache = cache_of(tmp_path, whole)
    (tmp_path / f"{A}.tmp").write_bytes(b"damaged")
    with pytest.raises(FarmFault, match="other bytes"):
        await cache.fetch(A)
    assert names_in(tmp_path) == set()
    assert (await cache.fetch(A)).read_bytes() == CONTENTS[0]


async def test_what_the_farm_does_not_have_leaves_no_part_of_itself(tmp_path: Path) -> None:
    with pytest.raises(FarmFault):
        await cache_of(tmp_path, lambda request: httpx.Response(500)).fetch(A)
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_farm_that_starts_again_behind_its_proxy_costs_nothing_of_what_is_there(
    tmp_path: Path, status: int
) -> None:
    """It cost all of it: a proxy that said 503 was taken for bytes that are wrong."""
    answers = iter([httpx.Response(200, content=_half()), httpx.Response(status)])
    asked: list[str | None] = []

    def farm(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("Range"))
        rest = httpx.Response(206, content=CONTENTS[0][50:])
        return next(answers, rest)

    cache = cache_of(tmp_path, farm)
    for _ in range(2):
        with pytest.raises(FarmFault):
            await cache.fetch(A)
    assert (await cache.fetch(A)).read_bytes() == CONTENTS[0]
    assert asked == [None, "bytes=50-", "bytes=50-"]


async def test_a_part_that_is_whole_already_is_fetched_again(tmp_path: Path) -> None:
    answers = iter([httpx.Response(200, content=_all_but_the_end()), httpx.Response(416)])
    cache = cache_of(tmp_path, lambda request: next(answers, _whole()))
    for _ in range(2):
        with pytest.raises(FarmFault):
            await cache.fetch(A)
    assert (await cache.fetch(A)).read_bytes() == CONTENTS[0]


def cache_of(folder: Path, handler: Callable[[httpx.Request], httpx.Response]) -> ArtifactCache:
    http = httpx.AsyncClient(base_url="http://farm", transport=httpx.MockTransport(handler))
    return ArtifactCache(folder, FarmApi(http), FakeClock(), limit_bytes=1000)


def _whole() -> httpx.Response:
    return httpx.Response(200, content=CONTENTS[0])


async def _half() -> AsyncIterator[bytes]:
    yield CONTENTS[0][:50]
    raise httpx.ReadError("the line broke")


async def _all_but_the_end() -> AsyncIterator[bytes]:
    yield CONTENTS[0]
    raise httpx.ReadError("the line broke before the end was said")


def full_for(host: Host, digest: Digest) -> None:
    """Have the next download of a file find no space: the kernel says so itself."""
    (host.folder / f"{digest}.tmp").symlink_to("/dev/full")


async def test_a_full_disk_is_relieved_of_what_no_one_needs(host: Host) -> None:
    host.held = {B}
    await host.fetch(A, B)
    full_for(host, C)
    await host.fetch(C)
    assert host.there == {B, C}


async def test_a_disk_that_is_full_of_what_is_needed_is_named(host: Host) -> None:
    host.held = {A, B}
    await host.fetch(A, B)
    full_for(host, C)
    with pytest.raises(HostDiskFull):
        await host.fetch(C)
    assert host.there == {A, B}


class Large:
    """A host on a disk of 4 MiB, and a farm whose one file has as many bytes as a test says."""

    def __init__(self, disk: SmallDisk, size_bytes: int) -> None:
        self.content = bytes(size_bytes)
        self.digest = digest_of(self.content)
        self.clock = FakeClock()
        self.calls = 0
        http = httpx.AsyncClient(base_url="http://farm", transport=httpx.MockTransport(self._serve))
        self.blobs = ArtifactCache(disk.folder / "cache", FarmApi(http), self.clock, limit_bytes=2**40)

    def _serve(self, _: httpx.Request) -> httpx.Response:
        self.calls += 1
        return httpx.Response(200, content=self.content)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 4) as disk:
        yield disk


@pytest.mark.fault(29)
async def test_a_file_that_does_not_fit_fills_no_disk_and_the_host_takes_no_work_until_it_would(
    small: SmallDisk,
) -> None:
    host = Large(small, 2 * 2**20)
    assert await host.blobs.shortage() is None
    small.fill(leave_bytes=2**20)
    with pytest.raises(HostDiskFull, match=r"which needs 2.10 MB, in .*cache"):
        await host.blobs.fetch(host.digest)
    assert names_in(host.blobs.folder) == set()
    assert shutil.disk_usage(small.folder).free == 2**20
    shortage = await host.blobs.shortage()
    assert shortage == f"the agent's disk has no space for a file of 2.10 MB in {host.blobs.folder}"
    small.free()
    assert await host.blobs.shortage() is None
    await host.blobs.fetch(host.digest)


@pytest.mark.fault(29)
async def test_a_file_that_is_asked_for_no_more_keeps_no_host_from_work(small: SmallDisk) -> None:
    host = Large(small, 2 * 2**20)
    small.fill(leave_bytes=2**20)
    for _ in range(3):
        with pytest.raises(HostDiskFull):
            await host.blobs.fetch(host.digest)
        host.clock.advance(400)
        assert await host.blobs.shortage() is not None
    host.clock.advance(400)
    assert await host.blobs.shortage() is None


@pytest.mark.fault(29)
async def test_a_file_that_this_disk_can_never_hold_keeps_no_host_from_other_work(small: SmallDisk) -> None:
    host = Large(small, 8 * 2**20)
    with pytest.raises(HostDiskFull):
        await host.blobs.fetch(host.digest)
    assert await host.blobs.shortage() is None
