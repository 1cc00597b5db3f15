"""The phone's cache, over a real adb server."""

import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.cleanup import evict_files
from agents.device.device_cache import LocalCopyCorrupted, ensure_cached
from agents.device.paths import cache_path
from agents.device.run.run_control import SUPERVISOR_FILE, ensure_supervisor
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import Blame, PushCorrupted, PushFailed
from farm.core.runs.plan import PlanFile

pytestmark = pytest.mark.anyio
CONTENT = bytes(range(256)) * 300
PROGRAM = b"#!/bin/sh\nexit 0\n"


def plan_file(content: bytes, name: str = "model", *, executable: bool = False) -> PlanFile:
    return PlanFile(name=name, digest=digest_of(content), size_bytes=len(content), executable=executable)


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def spoil(path: str, damage: bytes) -> None:
    Path(path).write_bytes(damage)


def is_there(path: str) -> bool:
    return Path(path).exists()


def modified_s(path: str) -> float:
    return Path(path).stat().st_mtime


def is_program(path: str) -> bool:
    return bool(Path(path).stat().st_mode & stat.S_IXUSR)


@pytest.fixture
def local_path(tmp_path: Path) -> Callable[[Digest], Awaitable[Path]]:
    host_cache = tmp_path / "host"
    host_cache.mkdir()
    for content in (CONTENT, PROGRAM):
        (host_cache / digest_of(content)).write_bytes(content)

    async def path(digest: Digest) -> Path:
        return host_cache / digest

    return path


LocalPath = Callable[[Digest], Awaitable[Path]]
FILES = [plan_file(CONTENT), plan_file(PROGRAM, "program", executable=True)]


async def test_a_cold_cache_gets_every_file_once_and_a_warm_one_none(
    device: AdbDevice, local_path: LocalPath
) -> None:
    cold = await ensure_cached(
        device, [*FILES, plan_file(CONTENT, "copy"), plan_file(PROGRAM, "text")], local_path
    )
    warm = await ensure_cached(device, FILES, local_path)
    assert cold.pushed_bytes == len(CONTENT) + len(PROGRAM)
    assert warm.pushed_bytes == 0
    assert cold.path_by_name["copy"] == cold.path_by_name["model"] == warm.path_by_name["model"]
    assert content(cold.path_by_name["model"]) == CONTENT
    assert is_program(cold.path_by_name["program"])


@pytest.mark.parametrize("damage", [CONTENT[:-1], b"x" + CONTENT[1:], b""])
@pytest.mark.fault(11)
async def test_a_file_that_was_damaged_on_the_phone_is_pushed_again(
    device: AdbDevice, local_path: LocalPath, damage: bytes
) -> None:
    path = (await ensure_cached(device, FILES, local_path)).path_by_name["model"]
    spoil(path, damage)
    again = await ensure_cached(device, FILES, local_path)
    assert again.pushed_bytes == len(CONTENT)
    assert content(path) == CONTENT


async def test_a_file_needed_as_a_program_later_becomes_one(device: AdbDevice, local_path: LocalPath) -> None:
    await ensure_cached(device, [plan_file(PROGRAM)], local_path)
    later = await ensure_cached(device, [plan_file(PROGRAM, "program", executable=True)], local_path)
    assert later.pushed_bytes == 0
    assert is_program(later.path_by_name["program"])


@pytest.mark.fault(10)
async def test_two_corrupted_pushes_are_tried_again(
    device: AdbDevice, local_path: LocalPath, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(corrupt_pushes=2))
    result = await ensure_cached(device, FILES[:1], local_path)
    assert result.pushed_bytes == 3 * len(CONTENT)
    assert content(result.path_by_name["model"]) == CONTENT


async def test_of_many_files_only_the_one_that_arrived_broken_is_pushed_again(
    device: AdbDevice, local_path: LocalPath, phone: VirtualDeviceHandle
) -> None:
    contents = [b"%d" % number * 100 for number in range(40)]
    for each in contents:
        (await local_path(digest_of(each))).write_bytes(each)
    files = [plan_file(each, f"file {number}") for number, each in enumerate(contents)]
    set_faults(phone.state, Faults(corrupt_pushes=1))
    result = await ensure_cached(device, [*files, FILES[1]], local_path)
    assert result.pushed_bytes == sum(map(len, contents)) + len(PROGRAM) + len(contents[0])
    assert [content(result.path_by_name[file.name]) for file in files] == contents
    assert is_program(result.path_by_name["program"])


@pytest.mark.fault(10)
async def test_a_third_corrupted_push_is_the_phones_fault_and_never_seen_in_the_cache(
    device: AdbDevice, work_root: str, local_path: LocalPath, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(corrupt_pushes=3))
    with pytest.raises(PushCorrupted):
        await ensure_cached(device, FILES[:1], local_path)
    for folder in ("cache", "incoming"):
        assert list((Path(work_root) / "benchfarm" / folder).iterdir()) == []


async def test_a_damaged_local_file_is_the_hosts_fault_and_may_pass(
    device: AdbDevice, local_path: LocalPath
) -> None:
    (await local_path(digest_of(CONTENT))).write_bytes(b"damaged")
    with pytest.raises(LocalCopyCorrupted) as caught:
        await ensure_cached(device, FILES[:1], local_path)
    assert (caught.value.blame, caught.value.transient) == (Blame.HOST, True)


async def test_a_full_phone_refuses_with_its_reason(
    device: AdbDevice, local_path: LocalPath, phone: VirtualDeviceHandle
) -> None:
    set_faults(phone.state, Faults(disk_full=True))
    with pytest.raises(PushFailed, match="No space left"):
        await ensure_cached(device, FILES, local_path)


async def test_what_a_broken_push_left_is_removed(
    device: AdbDevice, work_root: str, local_path: LocalPath
) -> None:
    left = Path(work_root) / "benchfarm/incoming" / ("0" * 64)
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    await ensure_cached(device, FILES, local_path)
    assert not left.exists()


async def test_a_phone_short_of_room_keeps_what_is_needed_and_the_supervisor(
    device: AdbDevice, work_root: str, local_path: LocalPath
) -> None:
    await ensure_supervisor(device)
    paths = (await ensure_cached(device, FILES, local_path)).path_by_name
    await evict_files(device, FILES[:1], min_free_bytes=0, cache_limit_bytes=2**60)
    assert is_there(paths["program"])
    await evict_files(device, FILES[:1], min_free_bytes=2**60, cache_limit_bytes=2**60)
    assert is_there(paths["model"])
    assert is_there(cache_path(work_root, SUPERVISOR_FILE.digest))
    assert not is_there(paths["program"])


async def test_a_cache_over_its_limit_keeps_what_is_needed_and_the_supervisor(
    device: AdbDevice, work_root: str, local_path: LocalPath
) -> None:
    await ensure_supervisor(device)
    paths = (await ensure_cached(device, FILES, local_path)).path_by_name
    await evict_files(device, FILES[:1], min_free_bytes=0, cache_limit_bytes=1)
    assert is_there(paths["model"])
    assert is_there(cache_path(work_root, SUPERVISOR_FILE.digest))
    assert not is_there(paths["program"])


async def test_the_run_that_used_a_file_decides_whatever_the_phones_clock_says(
    device: AdbDevice, local_path: LocalPath
) -> None:
    model, program = FILES
    # As if the clock had gone back between the runs: the later one comes first by the phone's time.
    paths = (await ensure_cached(device, [model], local_path, fence=42)).path_by_name
    paths |= (await ensure_cached(device, [program], local_path, fence=41)).path_by_name
    await evict_files(device, [], min_free_bytes=0, cache_limit_bytes=model.size_bytes)
    assert is_there(paths["model"])
    assert not is_there(paths["program"])


async def test_a_pushed_file_belongs_to_the_run_it_was_pushed_for(
    device: AdbDevice, local_path: LocalPath
) -> None:
    paths = (await ensure_cached(device, FILES, local_path, fence=90_061)).path_by_name
    assert {modified_s(path) for path in paths.values()} == {90_061}
