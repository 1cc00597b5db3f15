"""Runs under the supervisor, over a real adb server."""

import asyncio
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.paths import run_folder
from agents.device.run.collect import INLINE_BYTES, CollectedRun, collect_command, collect_run
from agents.device.run.run_control import RunStatus, clean_run, run_status, start_run, wait_run
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.errors import DeviceError, DeviceOffline, DeviceTimeout, SessionFenced
from tests.support.agents.shell_phone import alive

pytestmark = pytest.mark.anyio
NOW = datetime(2024, 5, 6, tzinfo=UTC)


def harness_pid(work_root: str, fence: int) -> int:
    return int((Path(run_folder(work_root, fence)) / "harness").read_text().split()[0])


async def finish(device: AdbDevice, work_root: str, fence: int, limit_bytes: int = 4096) -> CollectedRun:
    waited = await wait_run(device, fence, deadline_s=60, then=collect_command(work_root, fence))
    return await collect_run(device, fence, limit_bytes=limit_bytes, now=NOW, output=waited.output)


async def test_a_run_is_started_waited_for_and_collected(device: AdbDevice, work_root: str) -> None:
    argv = [
        "sh",
        "-c",
        'printf "%s|" "$PWD" "$WHAT" "$@"; echo err >&2; exit 3',
        "x",
        "it's",
        "a b",
        "$HOME",
        "*",
    ]
    await start_run(device, 1, argv, {"WHAT": "a 'quoted' $value\nover lines"}, 60)
    run = await finish(device, work_root, 1)
    words = run.stdout.decode().split("|")
    assert words == [
        run_folder(work_root, 1),
        "a 'quoted' $value\nover lines",
        "it's",
        "a b",
        "$HOME",
        "*",
        "",
    ]
    assert (run.exit.code, run.exit.timed_out, run.stderr) == (3, False, b"err\n")
    assert (run.stdout_dropped_bytes, run.stderr_dropped_bytes) == (0, 0)


async def test_output_over_the_limit_is_counted_and_left(device: AdbDevice, work_root: str) -> None:
    argv = ["sh", "-c", "head -c 100000 /dev/zero; echo no >&2"]
    await start_run(device, 1, argv, {}, 60)
    run = await finish(device, work_root, 1, limit_bytes=10000)
    assert (len(run.stdout), run.stdout_dropped_bytes) == (10000, 90000)
    assert (run.stderr, run.stderr_dropped_bytes) == (b"no\n", 0)


async def test_output_comes_back_byte_for_byte_however_much_there_is(
    device: AdbDevice, work_root: str, tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 500)
    script = f"cat '{tmp_path}/bytes'; head -c {INLINE_BYTES + 1} /dev/zero >&2"
    await start_run(device, 1, ["sh", "-c", script], {}, 60)
    run = await finish(device, work_root, 1, limit_bytes=2**22)
    assert run.stdout == bytes(range(256)) * 500
    assert run.stderr == bytes(INLINE_BYTES + 1)
    assert (run.stdout_dropped_bytes, run.stderr_dropped_bytes) == (0, 0)


async def test_what_a_run_did_to_the_phone_comes_with_what_it_left(device: AdbDevice, work_root: str) -> None:
    await start_run(device, 1, ["true"], {}, 60)
    after = (await finish(device, work_root, 1)).after
    assert after is not None
    assert after.taken_at == NOW
    assert after.boot_id


async def test_a_run_that_never_ends_is_timed_out_by_the_phone(device: AdbDevice, work_root: str) -> None:
    await start_run(device, 1, ["sleep", "60"], {}, 0.3)
    run = await finish(device, work_root, 1)
    assert run.exit.timed_out
    assert 0.3 <= run.exit.duration_s < 10


@pytest.mark.invariant("I8")
async def test_starting_twice_is_starting_once(device: AdbDevice, work_root: str) -> None:
    argv = ["sh", "-c", "echo once; sleep 0.3"]
    await start_run(device, 1, argv, {}, 60)
    await start_run(device, 1, argv, {}, 60)
    assert (await finish(device, work_root, 1)).stdout == b"once\n"


@pytest.mark.invariant("I3", "I8")
async def test_a_lower_fence_cannot_start(device: AdbDevice) -> None:
    await start_run(device, 5, ["true"], {}, 60)
    with pytest.raises(SessionFenced, match="fence"):
        await start_run(device, 4, ["true"], {}, 60)


async def test_a_restarted_agent_finds_out_what_became_of_a_run(device: AdbDevice, work_root: str) -> None:
    assert await run_status(device, 1) is RunStatus.UNKNOWN
    await start_run(device, 1, ["sleep", "60"], {}, 60)
    assert await run_status(device, 1) is RunStatus.RUNNING
    os.kill(harness_pid(work_root, 1), signal.SIGKILL)
    await wait_run(device, 1, deadline_s=60)
    assert await run_status(device, 1) is RunStatus.FINISHED
    await clean_run(device, 1)
    assert await run_status(device, 1) is RunStatus.UNKNOWN


@pytest.mark.fault(1, 3)
async def test_a_run_goes_on_while_the_phone_is_away_and_is_waited_for_when_it_is_back(
    device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    await start_run(device, 1, ["sh", "-c", f"until [ -e '{tmp_path}/go' ]; do sleep 0.05; done"], {}, 60)
    waiting = asyncio.create_task(wait_run(device, 1, deadline_s=60, grace_s=60))
    set_faults(phone.state, Faults(vanish=True))
    async with asyncio.timeout(120):
        while True:
            try:
                await device.shell("true", deadline_s=1)
            except DeviceError:
                break
    (tmp_path / "go").touch()
    set_faults(phone.state, Faults())
    await waiting
    assert (await collect_run(device, 1, limit_bytes=10, now=NOW)).exit.code == 0


@pytest.mark.fault(2)
async def test_a_phone_that_stays_away_is_given_up_after_the_grace_period(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    await start_run(device, 1, ["sleep", "60"], {}, 60)
    waiting = asyncio.create_task(wait_run(device, 1, deadline_s=60, grace_s=0.2))
    set_faults(phone.state, Faults(vanish=True))
    with pytest.raises(DeviceOffline):
        await waiting
    set_faults(phone.state, Faults())
    async with asyncio.timeout(120):
        while True:
            try:
                return await clean_run(device, 1)
            except DeviceError:
                await asyncio.sleep(0.1)


async def test_waiting_has_an_overall_deadline(device: AdbDevice) -> None:
    await start_run(device, 1, ["sleep", "60"], {}, 60)
    with pytest.raises(DeviceTimeout):
        await wait_run(device, 1, deadline_s=0.2)
    await clean_run(device, 1)


async def test_a_run_whose_supervisor_died_is_no_run_to_wait_for(device: AdbDevice, work_root: str) -> None:
    await start_run(device, 1, ["sleep", "60"], {}, 60)
    os.kill(int((Path(run_folder(work_root, 1)) / "supervisor").read_text().split()[0]), signal.SIGKILL)
    with pytest.raises(DeviceError, match="without an exit record"):
        await wait_run(device, 1, deadline_s=60)
    await clean_run(device, 1)


async def test_a_run_without_a_record_cannot_be_collected(device: AdbDevice) -> None:
    with pytest.raises(DeviceError, match="no exit record"):
        await collect_run(device, 1, limit_bytes=10, now=NOW)


@pytest.mark.invariant("I7", "I8")
@pytest.mark.fault(14)
async def test_cleaning_ends_what_runs_left_and_removes_their_folders(
    device: AdbDevice, work_root: str
) -> None:
    for fence in (1, 2):
        await start_run(device, fence, ["sh", "-c", "setsid sleep 60 & sleep 60"], {}, 60)
    harness = harness_pid(work_root, 2)
    await clean_run(device, 2)
    assert list((Path(work_root) / "benchfarm/runs").iterdir()) == []
    assert not alive(harness)
