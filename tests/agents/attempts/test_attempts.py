"""Attempts on a real virtual phone behind a real adb server, for a farm that the test plays."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from agents.adb.server import bundled_adb, end_own_server, find_own_server, own_address
from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.condition import Gates
from farm.core.jobs.attempt import AttemptState
from farm.phone.condition.run_trace import run_trace
from tests.support.agents.fake_farm import FakeFarm, living
from tests.support.agents.shell_phone import alive

pytestmark = pytest.mark.anyio


async def test_a_run_comes_back_as_evidence_and_the_phone_is_clean_after_it(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    played.assign(3, phone.serial, "echo out; echo err >&2; exit 7")
    async with living(config):
        evidence = await played.reported(3)
        await played.until(lambda: played.cleaned(phone.serial) == 3)
    assert evidence.exit is not None
    assert (evidence.exit.code, evidence.stdout, evidence.stderr) == (7, "out\n", "err\n")
    assert evidence.error is None
    assert evidence.before is not None
    assert evidence.after is not None
    assert not evidence.adopted
    assert list((config.data_dir / "attempts").iterdir()) == []
    assert not (config.data_dir / "spool" / "3.json").exists()


async def test_a_file_travels_to_the_phone_once(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    file = played.add_file(b"some weights" * 1000)
    read = ("sh", "-c", "wc -c <${file_data}")
    async with living(config):
        played.assign(1, phone.serial, "", files=(file,), argv=read)
        first = await played.reported(1)
        played.assign(2, phone.serial, "", files=(file,), argv=read)
        second = await played.reported(2)
    assert first.stdout.strip() == second.stdout.strip() == "12000"
    assert first.pushed_bytes == 12000
    assert second.pushed_bytes == 0


async def test_a_file_that_was_damaged_in_the_hosts_cache_costs_no_job(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    file = played.add_file(b"some weights" * 1000)
    read = ("sh", "-c", "cat <${file_data}")
    async with living(config):
        played.assign(1, phone.serial, "", files=(file,), argv=read)
        first = await played.reported(1)
        (config.data_dir / "cache" / file.digest).write_bytes(b"rotten weights")
        forget_on_phone(phone, file.digest)
        played.assign(2, phone.serial, "", files=(file,), argv=read)
        second = await played.reported(2)
    assert second.error is None
    assert second.stdout == first.stdout


@pytest.mark.fault(7)
async def test_a_run_that_never_ends_is_ended_and_says_so(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    played.assign(1, phone.serial, "echo begun; sleep 600", timeout_s=3)
    async with living(config):
        evidence = await played.reported(1)
    assert evidence.exit is not None
    assert evidence.exit.timed_out
    assert evidence.stdout == "begun\n"


@pytest.mark.fault(46, 47)
async def test_a_phone_that_is_not_fit_gives_the_job_back_with_the_reason(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    gates = Gates(min_storage_bytes=2**60, wait_s=0.0)
    async with living(config):
        played.assign(1, phone.serial, "true", gates=gates)
        await played.until(lambda: 1 in played.given_back)
        await played.until(lambda: played.cleaned(phone.serial) == 1)
    assert "MiB free" in played.given_back[1]
    assert 1 not in played.reports


async def test_the_farm_hears_what_a_run_waits_for_while_it_waits(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    def heard() -> list[str]:
        reports = [report for said in played.exchanges for report in said.attempts]
        return [report.waiting_for for report in reports if report.waiting_for]

    async with living(config):
        await played.until(lambda: phone.serial in played.devices())
        gates = Gates(min_storage_bytes=2**60, wait_s=600)
        played.assign(1, phone.serial, "echo never", gates=gates)
        await played.until(lambda: bool(heard()))
    assert "MiB free" in heard()[0]


async def test_a_plan_that_names_what_is_not_there_is_reported_as_trouble(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    played.assign(1, phone.serial, "", argv=("${file_absent}",))
    async with living(config):
        evidence = await played.reported(1)
    assert evidence.error is not None
    assert "file_absent" in evidence.error.message
    assert evidence.exit is None


async def test_a_run_that_went_wrong_leaves_the_screen_as_it_was(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    screen = screen_setting(phone, "3\n")
    async with living(config):
        played.assign(1, phone.serial, "", argv=("${file_absent}",))
        await played.until(lambda: played.cleaned(phone.serial) == 1)
    assert screen.read_text() == "3\n"


@pytest.mark.invariant("I16")
async def test_an_attempt_the_farm_drops_is_ended_on_the_phone(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm, tmp_path: Path
) -> None:
    witness = tmp_path / "alive"
    played.assign(1, phone.serial, f"echo $$ >{witness}.new; mv {witness}.new {witness}; sleep 600")
    async with living(config):
        await played.until(lambda: bool(played.exchanges) and played.phase(1) is AttemptState.MEASURING)
        await played.until(witness.exists)
        played.assignments.clear()
        await played.until(lambda: played.cleaned(phone.serial) == 1)
    assert not alive(int(witness.read_text()))
    assert 1 not in played.reports


@pytest.mark.invariant("I4", "I8")
@pytest.mark.fault(24)
async def test_a_run_outlives_its_agent_and_is_adopted_after_a_restart(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm, tmp_path: Path
) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    os.mkfifo(go)
    pipe = os.open(go, os.O_RDWR)
    played.assign(1, phone.serial, f"echo begun; >{begun}; read word <{go}; echo $word")
    async with living(config):
        await played.until(begun.exists)
    async with living(config):
        await played.until(lambda: len(played.openings) == 2)
        os.write(pipe, b"done\n")
        evidence = await played.reported(1)
    assert [(each.attempt_id, each.phase) for each in played.openings[1].attempts] == [(1, "measuring")]
    os.close(pipe)
    assert evidence.adopted
    assert evidence.stdout == "begun\ndone\n"
    # Its phone went on sampling, without an agent.
    trace = run_trace(evidence.trace)
    assert trace is not None
    assert trace.samples
    assert not trace.is_cut
    assert evidence.before is not None


@pytest.mark.long
@pytest.mark.invariant("I8")
async def test_a_run_the_farm_gave_up_in_between_is_ended_after_a_restart(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm, tmp_path: Path
) -> None:
    witness, screen = tmp_path / "alive", screen_setting(phone, "3\n")
    played.assign(1, phone.serial, f"echo $$ >{witness}.new; mv {witness}.new {witness}; sleep 600")
    async with living(config):
        await played.until(lambda: bool(played.exchanges) and played.phase(1) is AttemptState.MEASURING)
        await played.until(witness.exists)
    assert alive(int(witness.read_text()))
    assert screen.read_text() == "15\n"
    played.assignments.clear()
    async with living(config):
        await played.until(lambda: len(played.openings) == 2 and played.cleaned(phone.serial) == 1)
    assert not alive(int(witness.read_text()))
    assert screen.read_text() == "3\n"
    assert list((config.data_dir / "attempts").iterdir()) == []


@pytest.mark.fault(16)
async def test_a_killed_adb_server_costs_no_run(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm
) -> None:
    played.assign(1, phone.serial, "sleep 2; echo done")
    async with living(config):
        await played.until(lambda: bool(played.exchanges) and played.phase(1) is AttemptState.MEASURING)
        end_own_server(config.data_dir / "adb", signals=(signal.SIGKILL,))
        evidence = await played.reported(1)
        assert evidence.stdout == "done\n"
        await played.until(lambda: played.cleaned(phone.serial) == 1)


@pytest.mark.long
@pytest.mark.fault(16)
async def test_another_adb_that_would_end_the_server_does_not_and_costs_no_run(
    config: AgentConfig, phone: VirtualDeviceHandle, played: FakeFarm, tmp_path: Path
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    played.assign(1, phone.serial, f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; echo done")
    async with living(config):
        await played.until(begun.exists)
        server = find_own_server(config.data_dir / "adb")
        assert server is not None
        killer = [str(bundled_adb()), "-L", own_address(config.data_dir / "adb"), "kill-server"]
        await asyncio.to_thread(subprocess.run, killer, capture_output=True, check=False, timeout=120)
        go.touch()
        evidence = await played.reported(1)
        assert (evidence.stdout, evidence.error, evidence.away_s) == ("done\n", None, 0.0)
        assert find_own_server(config.data_dir / "adb") == server


def screen_setting(phone: VirtualDeviceHandle, value: str) -> Path:
    """Set when the phone's screen stays on; gives where the phone keeps that."""
    setting = phone.state / "settings/global/stay_on_while_plugged_in"
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text(value)
    return setting


def forget_on_phone(phone: VirtualDeviceHandle, digest: str) -> None:
    """Take a file out of the phone's own cache."""
    (path,) = phone.state.glob(f"**/benchfarm/cache/{digest}")
    path.unlink()
