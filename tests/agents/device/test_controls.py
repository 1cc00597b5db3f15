"""Clocks and cores are set as root, read back, and put back by whoever ends the run."""

import asyncio
import os
import shutil
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.control.controls import restore_controls, set_controls
from agents.device.paths import controls_record, run_folder
from agents.device.run.collect import CollectedRun, collect_command, collect_run
from agents.device.run.run_control import RunStatus, clean_run, run_status, start_run, wait_run
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.controls import Controls, ControlState, control_deviations
from farm.core.devices.device import Cluster
from farm.core.errors import ControlImpossible, DeviceProtocol
from farm.phone.settings import with_read_back
from tests.support.agents.device_clocks import set_clusters
from tests.support.agents.rooted_device import make_rooted

pytestmark = pytest.mark.anyio
LITTLE = Cluster(cores=(0, 1, 2, 3), min_hz=300_000_000, max_hz=1_800_000_000)
BIG = Cluster(cores=(4, 5, 6), min_hz=600_000_000, max_hz=2_600_000_000)
FIXED = Controls(governor="performance", min_hz=1_400_000_000, max_hz=2_200_000_000)


@pytest.fixture
def rooted(phone: VirtualDeviceHandle) -> VirtualDeviceHandle:
    """A phone with root and two clusters."""
    make_rooted(phone.state)
    set_clusters(phone.state, [LITTLE, BIG])
    return phone


def clock(phone: VirtualDeviceHandle, policy: str, file: str) -> str:
    return (phone.state / f"sys/devices/system/cpu/cpufreq/{policy}/scaling_{file}").read_text().strip()


def all_files(phone: VirtualDeviceHandle) -> dict[str, str]:
    files = (phone.state / "sys").rglob("*")
    return {str(file): file.read_text() for file in files if file.is_file()}


def is_recorded(work_root: str) -> bool:
    return Path(controls_record(work_root)).exists()


def make_record_of_another_boot(work_root: str) -> None:
    record = Path(controls_record(work_root))
    fence, _, *rows = record.read_text().splitlines()
    record.write_text("\n".join([fence, "the-boot-before", *rows, ""]))


async def collected(device: AdbDevice, work_root: str, fence: int) -> CollectedRun:
    then = collect_command(work_root, fence, with_controls=True)
    waited = await wait_run(device, fence, deadline_s=60, then=then)
    return await collect_run(
        device, fence, limit_bytes=4096, now=datetime(2031, 5, 6, tzinfo=UTC), output=waited.output
    )


async def test_clocks_are_set_within_what_each_cluster_can_do_and_read_back(
    device: AdbDevice, rooted: VirtualDeviceHandle
) -> None:
    states = await set_controls(device, 1, FIXED)
    assert control_deviations(states) == []
    by_name = {state.name: state for state in states}
    assert by_name["policy0.governor"] == ControlState(
        name="policy0.governor", requested="performance", before="schedutil", actual_before="performance"
    )
    # 2.2 GHz is more than the small cores can do.
    assert by_name["policy0.max_hz"].requested == "1800000000"
    assert by_name["policy4.max_hz"].requested == "2200000000"
    assert clock(rooted, "policy4", "min_freq") == "1400000"


async def test_a_runs_end_puts_everything_back_after_it_was_read_back(
    device: AdbDevice, work_root: str, rooted: VirtualDeviceHandle
) -> None:
    before = all_files(rooted)
    states = await set_controls(device, 1, FIXED)
    # As a vendor's own daemon does.
    limit = rooted.state / "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"
    await start_run(device, 1, ["sh", "-c", f"echo 900000 >'{limit}'"], {}, 60)
    run = await collected(device, work_root, 1)
    assert all_files(rooted) == before
    assert not is_recorded(work_root)
    assert control_deviations(with_read_back(states, run.controls)) == [
        "policy4.max_hz was 900000000 after the run, 2200000000 was asked for"
    ]


@pytest.mark.parametrize("ends_by", ["clean-up", "kill of the supervisor", "the agent's next contact"])
async def test_whatever_ends_a_run_puts_everything_back(
    device: AdbDevice, work_root: str, rooted: VirtualDeviceHandle, ends_by: str
) -> None:
    before = all_files(rooted)
    await set_controls(device, 1, FIXED)
    assert all_files(rooted) != before
    if ends_by != "the agent's next contact":
        await start_run(device, 1, ["sleep", "600"], {}, 600)
    if ends_by == "kill of the supervisor":
        supervisor = int((Path(run_folder(work_root, 1)) / "supervisor").read_text().split()[0])
        os.kill(supervisor, signal.SIGKILL)
    if ends_by == "the agent's next contact":
        await restore_controls(device)
    else:
        await clean_run(device, 1)
    assert all_files(rooted) == before


async def test_a_run_that_goes_on_without_its_agent_puts_everything_back(
    device: AdbDevice, rooted: VirtualDeviceHandle
) -> None:
    before = all_files(rooted)
    await set_controls(device, 1, FIXED)
    await start_run(device, 1, ["sleep", "0.3"], {}, 60)
    # Nobody waits for it, as where a cable was pulled; then somebody asks.
    async with asyncio.timeout(120):
        while await run_status(device, 1) is RunStatus.RUNNING:
            pass
    assert all_files(rooted) == before


async def test_another_boot_has_forgotten_all_that_was_set(
    device: AdbDevice, work_root: str, rooted: VirtualDeviceHandle
) -> None:
    await set_controls(device, 1, FIXED)
    make_record_of_another_boot(work_root)
    await restore_controls(device)
    assert clock(rooted, "policy0", "governor") == "performance"
    assert not is_recorded(work_root)


async def test_a_second_setting_begins_with_what_there_was_before_the_first(
    device: AdbDevice, rooted: VirtualDeviceHandle
) -> None:
    before = all_files(rooted)
    await set_controls(device, 1, FIXED)
    states = await set_controls(device, 2, Controls(governor="powersave"))
    assert {state.before for state in states} == {"schedutil"}
    await restore_controls(device)
    assert all_files(rooted) == before


async def test_cores_are_switched_off_and_on(device: AdbDevice, rooted: VirtualDeviceHandle) -> None:
    states = await set_controls(device, 1, Controls(online="0-3"))
    online = rooted.state / "sys/devices/system/cpu"
    assert [(online / f"cpu{core}/online").read_text().strip() for core in (3, 4, 5)] == ["1", "0", "0"]
    assert control_deviations(states) == []
    await restore_controls(device)
    assert (online / "cpu4/online").read_text().strip() == "1"


async def test_a_core_that_cannot_be_switched_is_said_not_to_be(
    device: AdbDevice, rooted: VirtualDeviceHandle
) -> None:
    off = await set_controls(device, 1, Controls(online="4-6"))
    assert [
        words for words in control_deviations(off) if words.startswith("cpu0.online could not be set to 0")
    ]
    missing = await set_controls(device, 1, Controls(online="0-7"))
    assert [state.name for state in missing if state.problem] == ["cpu7.online"]


async def test_cores_that_are_off_have_no_clocks_to_set(
    device: AdbDevice, rooted: VirtualDeviceHandle
) -> None:
    # All files of such a policy fail to be read; here they are gone.
    shutil.rmtree(rooted.state / "sys/devices/system/cpu/cpufreq/policy4")
    (rooted.state / "sys/devices/system/cpu/cpufreq/policy4").mkdir()
    states = await set_controls(device, 1, Controls(online="0-3", governor="performance"))
    assert control_deviations(states) == []
    assert "policy4.governor" not in {state.name for state in states}


async def test_what_cannot_be_put_back_stays_written_down(
    device: AdbDevice, work_root: str, rooted: VirtualDeviceHandle
) -> None:
    await set_controls(device, 1, FIXED)
    governor = rooted.state / "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    governor.unlink()
    governor.mkdir()
    with pytest.raises(DeviceProtocol, match="could not be restored"):
        await restore_controls(device)
    assert is_recorded(work_root)
    assert clock(rooted, "policy4", "governor") == "schedutil"


async def test_without_root_nothing_is_set_and_it_is_said(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    set_clusters(phone.state, [LITTLE, BIG])
    before = all_files(phone)
    with pytest.raises(ControlImpossible, match="has no root"):
        await set_controls(device, 1, FIXED)
    assert all_files(phone) == before


async def test_a_phone_that_shows_no_clocks_cannot_be_set(
    device: AdbDevice, phone: VirtualDeviceHandle
) -> None:
    make_rooted(phone.state)
    with pytest.raises(ControlImpossible, match="reports no clocks"):
        await set_controls(device, 1, FIXED)


async def test_a_clock_that_takes_no_value_is_seen(device: AdbDevice, rooted: VirtualDeviceHandle) -> None:
    limit = rooted.state / "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    limit.unlink()
    limit.symlink_to("/dev/null")
    states = await set_controls(device, 1, Controls(max_hz=1_000_000_000))
    assert any(words.startswith("policy0.max_hz") for words in control_deviations(states))


async def test_a_bound_runs_threads_all_keep_to_its_cores(device: AdbDevice, work_root: str) -> None:
    core = max(os.sched_getaffinity(0))
    show = "sh -c 'grep Cpus_allowed_list /proc/$$/status' & wait; grep Cpus_allowed_list /proc/$$/status"
    await start_run(device, 1, ["sh", "-c", show], {}, 60, cores=[core])
    run = await collected(device, work_root, 1)
    assert run.stdout.decode().split() == ["Cpus_allowed_list:", str(core)] * 2
    assert run.cores == str(core)


async def test_a_run_that_cannot_be_bound_does_not_begin(device: AdbDevice, work_root: str) -> None:
    await start_run(device, 1, ["touch", "ran"], {}, 60, cores=[250])
    run = await collected(device, work_root, 1)
    assert run.exit.code == 125
    assert not (Path(run_folder(work_root, 1)) / "ran").exists()
    assert run.cores != "250"


async def test_a_runs_cpu_time_is_told(device: AdbDevice, work_root: str) -> None:
    burn = "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done"
    await start_run(device, 1, ["sh", "-c", burn], {}, 60)
    busy = (await collected(device, work_root, 1)).exit
    await start_run(device, 2, ["sleep", "0.5"], {}, 60)
    idle = (await collected(device, work_root, 2)).exit
    assert busy.cpu_s is not None
    assert idle.cpu_s is not None
    assert busy.cpu_s > 0.03
    assert idle.cpu_s < 0.1 < idle.duration_s
