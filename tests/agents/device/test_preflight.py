"""How little a phone is asked before a run, and what makes the agent ask again."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import httpx
import pytest

from agents.adb.client import AdbClient, AdbDevice
from agents.adb.server import AdbServer
from agents.adb.shell_v2 import ShellResult
from agents.attempts.artifact_cache import ArtifactCache
from agents.attempts.preparation import DevicePreparation
from agents.device.conditions import DeviceStateCache, read_preflight
from agents.device.facts import read_facts
from agents.devices.monitor import OnlineDevice
from agents.farm_api import FarmApi
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.base.ids import digest_of
from farm.core.devices.condition import Gates
from farm.core.runs.plan import PlanFile, RunPlan

pytestmark = pytest.mark.anyio
CONTENT = bytes(range(256)) * 300
FILE = PlanFile(name="model", digest=digest_of(CONTENT), size_bytes=len(CONTENT))
PLAN = RunPlan(
    harness="test",
    backend="cpu",
    files=(FILE,),
    argv=("true",),
    timeout_s=20.0,
    gates=Gates(min_storage_bytes=0, wait_s=0),
)


class CountedDevice(AdbDevice):
    """A phone that writes down what it was asked."""

    def __init__(self, client: AdbClient, serial: str) -> None:
        super().__init__(client, serial)
        self.asked: list[str] = []

    async def shell(
        self, command: str, *, deadline_s: float, stdin: bytes = b"", limit_bytes: int = 2**22
    ) -> ShellResult:
        self.asked.append(command)
        return await super().shell(command, deadline_s=deadline_s, stdin=stdin, limit_bytes=limit_bytes)


@pytest.fixture
async def used(server: AdbServer, device: AdbDevice, phone: VirtualDeviceHandle) -> OnlineDevice:
    counted, facts = CountedDevice(AdbClient(server.address), phone.address), await read_facts(device)
    counted.work_root = facts.work_root
    return OnlineDevice(adb=counted, facts=facts, boot_id=None, state_cache=DeviceStateCache())


@pytest.fixture
def preparation(tmp_path: Path) -> DevicePreparation:
    return prepares(tmp_path / "blobs")


def prepares(folder: Path, max_pushes: int | None = None) -> DevicePreparation:
    """One whose host has the file already."""
    clock = SystemClock()
    folder.mkdir()
    (folder / FILE.digest).write_bytes(CONTENT)
    blobs = ArtifactCache(folder, FarmApi(httpx.AsyncClient()), clock, limit_bytes=2**30)
    return DevicePreparation(
        artifacts=blobs,
        clock=clock,
        random=Random(1),
        device_cache_limit_bytes=2**30,
        max_pushes=max_pushes,
    )


def asked(phone: OnlineDevice) -> Sequence[str]:
    """What the phone was asked since this was last called."""
    assert isinstance(phone.adb, CountedDevice)
    found, phone.adb.asked = phone.adb.asked, []
    return found


async def warm(preparation: DevicePreparation, phone: OnlineDevice) -> Path:
    """Have the file on the phone and its digest known; gives its path there."""
    ready = await preparation.prepare(phone, PLAN, 1)
    assert ready.pushed_bytes == len(CONTENT)
    assert (await preparation.prepare(phone, PLAN, 2)).pushed_bytes == 0
    asked(phone)
    return Path(ready.path_by_name["model"])


async def test_a_warm_phone_is_asked_once(preparation: DevicePreparation, used: OnlineDevice) -> None:
    await warm(preparation, used)
    ready = await preparation.prepare(used, PLAN, 3)
    assert ready.condition.boot_id
    assert len(asked(used)) == 1


async def told_by_a_clean_up(phone: OnlineDevice) -> None:
    """Have a run end and be cleaned up, as far as the agent hears of it."""
    seen = await read_preflight(phone.adb, SystemClock().now())
    phone.state_cache.record_after_run(seen.condition, SystemClock().monotonic())
    phone.state_cache.record_cleaned(seen.state_by_digest)
    asked(phone)


async def test_a_phone_that_was_looked_at_when_it_became_free_is_not_asked_again(
    preparation: DevicePreparation, used: OnlineDevice
) -> None:
    await warm(preparation, used)
    preflight_lock = asyncio.create_task(preparation.preflight_next(used, lambda: True))
    await asyncio.sleep(0)
    await preparation.prepare(used, PLAN, 3)
    await preflight_lock
    assert len(asked(used)) == 1


async def test_a_phone_whose_clean_up_told_all_is_ready_without_being_asked(
    preparation: DevicePreparation, used: OnlineDevice
) -> None:
    path = await warm(preparation, used)
    await told_by_a_clean_up(used)
    await preparation.preflight_next(used, lambda: True)
    ready = preparation.find_prepared(used, PLAN, 3)
    assert ready is not None
    assert ready.path_by_name == {"model": str(path)}
    assert preparation.find_prepared(used, PLAN, 4) is None, "a look serves one run"
    assert asked(used) == []


@pytest.mark.parametrize("spoilt", ["screen", "file", "gates"])
async def test_a_phone_that_needs_anything_is_not_called_ready(
    preparation: DevicePreparation, used: OnlineDevice, spoilt: str
) -> None:
    path, plan = await warm(preparation, used), PLAN
    match spoilt:
        case "screen":
            await preparation.restore_screen(used)
        case "file":
            path.write_bytes(b"x" + CONTENT[1:])
        case "gates":
            plan = replace(PLAN, gates=Gates(min_storage_bytes=2**60, wait_s=0))
    await told_by_a_clean_up(used)
    assert preparation.find_prepared(used, plan, 3) is None


async def test_no_one_looks_ahead_at_a_phone_that_has_its_next_run(
    preparation: DevicePreparation, used: OnlineDevice
) -> None:
    await warm(preparation, used)
    await preparation.preflight_next(used, lambda: False)
    assert asked(used) == []


async def test_a_file_that_was_damaged_behind_our_back_is_pushed_again(
    preparation: DevicePreparation, used: OnlineDevice
) -> None:
    path = await warm(preparation, used)
    before = path.stat()
    path.write_bytes(b"x" + CONTENT[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await preparation.prepare(used, PLAN, 3)).pushed_bytes == len(CONTENT)
    assert path.read_bytes() == CONTENT


async def test_after_any_doubt_digests_are_computed_again(
    preparation: DevicePreparation, used: OnlineDevice
) -> None:
    await warm(preparation, used)
    again = replace(used, state_cache=DeviceStateCache())
    assert (await preparation.prepare(again, PLAN, 3)).pushed_bytes == 0
    assert [command for command in asked(again) if f"{FILE.digest}" in command and "sha256sum" in command]


class CountingDevice(AdbDevice):
    """A phone that knows how many of its kind get files at the same time."""

    pushing = most = 0

    async def push(self, source: Path, remote: str, *, mode: int, deadline_s: float) -> int:
        kind = type(self)
        kind.pushing += 1
        kind.most = max(kind.most, kind.pushing)
        # Whoever else may push has begun by then.
        await asyncio.sleep(0.05)
        try:
            return await super().push(source, remote, mode=mode, deadline_s=deadline_s)
        finally:
            kind.pushing -= 1


@pytest.mark.invariant("I18")
async def test_no_more_phones_get_files_at_once_than_the_host_may_serve(
    server: AdbServer, device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    facts = await read_facts(device)
    limited = prepares(tmp_path / "blobs", max_pushes=1)
    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            root = phone.state / f"work-{number}"
            root.mkdir()
            one = CountingDevice(AdbClient(server.address), phone.address)
            one.work_root = str(root)
            own = OnlineDevice(adb=one, facts=facts, boot_id=None, state_cache=DeviceStateCache())
            tasks.create_task(limited.prepare(own, PLAN, 1))
    assert CountingDevice.most == 1
