"""What operators ask of phones, on a virtual phone behind a real adb server."""

import asyncio
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.cleanup import clean_device
from agents.device.control.identify import identify
from agents.device.device_cache import ensure_cached
from agents.device.paths import cache_folder
from agents.device.run.run_control import SUPERVISOR_FILE, start_run
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import DeviceProtocol
from farm.core.runs.plan import PlanFile

pytestmark = pytest.mark.anyio

LABEL = "bench 3; it's $HOME's"


async def test_a_phone_shows_its_label_as_it_is_written(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    done = await identify(device, LABEL, show_s=0)
    assert (phone.state / "notifications" / "benchfarm").read_text() == f"{LABEL}\n"
    assert repr(LABEL) in done


async def test_a_phone_that_posts_no_notifications_blinks(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    (phone.state / "bin" / "cmd").write_text("#!/bin/sh\necho 'no shell command' >&2\nexit 255\n")
    (phone.state / "bin" / "sleep").write_text("#!/bin/sh\n")
    (phone.state / "bin" / "input").write_text('#!/bin/sh\necho "$2" >>"$HOME/keys"\n')
    (phone.state / "bin" / "sleep").chmod(0o755)
    assert "off and on 4 times" in await identify(device, LABEL)
    keys = (phone.state / "data" / "keys").read_text().split()
    assert keys == ["KEYCODE_WAKEUP", *["KEYCODE_SLEEP", "KEYCODE_WAKEUP"] * 4]


async def test_a_phone_without_a_screen_to_blink_says_so(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    for name in ("cmd", "input"):
        (phone.state / "bin" / name).write_text("#!/bin/sh\necho 'no such service' >&2\nexit 1\n")
    with pytest.raises(DeviceProtocol, match="no such service"):
        await identify(device, LABEL)


async def test_cleaning_ends_left_runs_and_frees_the_cache_but_for_the_supervisor(
    device: AdbDevice, work_root: str, tmp_path: Path
) -> None:
    await fill_cache(device, work_root, tmp_path, b"x" * 1000, b"y" * 234)
    await start_run(device, 7, ("sleep", "600"), {}, 600.0)
    freed = await clean_device(device)
    assert (freed.files, freed.freed_bytes) == (2, 1234)
    assert await names_in(device, cache_folder(work_root)) == [SUPERVISOR_FILE.digest]
    assert await names_in(device, f"{work_root}/benchfarm/runs") == []


async def test_cleaning_a_phone_that_nothing_ran_on_frees_nothing(device: AdbDevice) -> None:
    freed = await clean_device(device)
    assert (freed.files, freed.freed_bytes) == (0, 0)


async def fill_cache(device: AdbDevice, work_root: str, folder: Path, *contents: bytes) -> None:
    files = [PlanFile(name="file", digest=digest_of(each), size_bytes=len(each)) for each in contents]
    for file, content in zip(files, contents, strict=True):
        await asyncio.to_thread((folder / file.digest).write_bytes, content)

    async def local_path(digest: Digest) -> Path:
        return folder / digest

    await ensure_cached(device, files, local_path)


async def names_in(device: AdbDevice, folder: str) -> list[str]:
    result = await device.shell(f"ls {folder}", deadline_s=60)
    return result.stdout.decode().split()
