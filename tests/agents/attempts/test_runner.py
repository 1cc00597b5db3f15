"""One attempt on a real phone behind a real adb server, with adb's row of it taken away and put back."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.device.conditions import read_condition
from agents.device.paths import run_folder
from agents.device.run.gates import keep_device_awake
from agents.device.run.run_control import RunLost, start_run
from agents.outbox.attempt_journal import AttemptPhase
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from farm.clock import SystemClock
from farm.core.devices.condition import Gates, closed_gates
from farm.core.devices.controls import Controls
from farm.core.errors import DeviceRebooted
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.runner_fixture import Bench, benched, ends_within, unheard

pytestmark = pytest.mark.anyio


async def test_a_run_is_adopted_although_the_phone_is_away_for_a_moment(bench: Bench) -> None:
    phone = await bench.phone()
    await start_run(phone.adb, 1, ["sh", "-c", "echo done"], {}, 20.0)
    await bench.detach()
    adopting = asyncio.create_task(bench.runner.run(bench.entry(1, "echo done"), unheard, adopt=True))
    assert not await ends_within(adopting, 0.5)
    await bench.attach()
    evidence = await adopting
    assert isinstance(evidence, Evidence)
    assert evidence.error is None
    assert evidence.stdout == "done\n"


async def test_a_run_that_was_noted_and_not_started_is_started_by_the_next_life(bench: Bench) -> None:
    phone = await bench.phone()
    # As the earlier life left it.
    await keep_device_awake(phone.adb, Controls())
    before = await read_condition(phone.adb, SystemClock().now())
    noted = bench.entry(1, "echo $WORD")
    draft = Evidence(fence=1, argv=noted.plan.argv, before=before)
    plan = replace(noted.plan, env={"WORD": "done"})
    evidence = await bench.runner.run(replace(noted, plan=plan, draft=draft), unheard, adopt=True)
    assert isinstance(evidence, Evidence)
    assert evidence.error is None
    assert evidence.stdout == "done\n"
    assert evidence.before == before


@pytest.mark.fault(4)
async def test_a_run_that_was_noted_before_the_phone_restarted_is_not_started(bench: Bench) -> None:
    phone = await bench.phone()
    # All gates are open: nothing but the boot keeps it from running.
    await keep_device_awake(phone.adb, Controls())
    before = await read_condition(phone.adb, SystemClock().now())
    noted = bench.entry(1, "echo done")
    draft = Evidence(fence=1, argv=noted.plan.argv, before=replace(before, boot_id="another boot"))
    evidence = await bench.runner.run(replace(noted, draft=draft), unheard, adopt=True)
    assert isinstance(evidence, Evidence)
    assert evidence.error is not None
    assert evidence.error.code == DeviceRebooted.code
    assert evidence.exit is None


async def test_a_run_that_died_without_a_record_while_no_agent_looked_is_not_called_unstarted(
    bench: Bench,
) -> None:
    phone = await bench.phone()
    before = await read_condition(phone.adb, SystemClock().now())
    # The screen is off, so that no run could start now.
    assert closed_gates(before, Gates(), Controls())
    noted = bench.entry(1, "sleep 60")
    await start_run(phone.adb, 1, noted.plan.argv, {}, 20.0)
    folder = run_folder(phone.adb.work_root, 1)
    await phone.adb.shell(f"kill -s KILL $(cut -d ' ' -f 1 {folder}/supervisor)", deadline_s=20.0)
    evidence = await bench.runner.run(
        replace(noted, draft=Evidence(fence=1, argv=noted.plan.argv, before=before)), unheard, adopt=True
    )
    assert isinstance(evidence, Evidence)
    assert evidence.error is not None
    assert evidence.error.code == RunLost.code
    await bench.runner.clean_up(bench.device_id, 1)


async def test_a_warm_job_is_three_calls_to_the_phone_and_one_phase_on_disk(bench: Bench) -> None:
    """Start; wait, with what the run left; clean up, with all that the next one has to know."""
    phone, phases = await bench.phone(), list[AttemptPhase]()

    async def note(phase: AttemptPhase, draft: Evidence) -> None:
        phases.append(phase)

    for fence in (1, 2, 3):
        bench.adb.asked = 0
        phases.clear()
        evidence = await bench.runner.run(bench.entry(fence, "echo done"), note, adopt=False)
        assert isinstance(evidence, Evidence)
        assert evidence.error is None, evidence.error
        assert evidence.before is not None
        assert evidence.before.boot_id == phone.boot_id
        await bench.runner.clean_up(bench.device_id, fence, stay_awake=True)
    assert bench.adb.asked == 3
    assert phases == [AttemptState.MEASURING]


@pytest.mark.long
async def test_a_phone_whose_services_hang_after_a_run_does_not_cost_the_run(bench: Bench) -> None:
    await bench.phone()
    asks = bench.handle.state / "bin/dumpsys"
    hang = f"sleep 0.2; rm {asks}; echo 'exec sleep 600' >{asks}; chmod 755 {asks}; echo done"
    entry = bench.entry(1, hang)
    # In this time a busy machine runs those few programs; then the agent waits for no services any more.
    entry = replace(entry, plan=replace(entry.plan, timeout_s=8.0))
    evidence = await bench.runner_with(wait_margin_s=0.0).run(entry, unheard, adopt=False)
    assert isinstance(evidence, Evidence)
    assert evidence.error is None, evidence.error
    assert (evidence.stdout, evidence.after) == ("done\n", None)
    assert evidence.exit is not None


@pytest.mark.parametrize("next_comes", [False, True])
async def test_a_screen_that_waited_for_a_next_run_is_let_go_when_none_comes(
    bench: Bench, next_comes: bool
) -> None:
    await bench.phone()
    screen = bench.handle.state / "settings/global/stay_on_while_plugged_in"
    screen.parent.mkdir(parents=True, exist_ok=True)
    screen.write_text("3\n")
    await bench.runner.run(bench.entry(1, "true"), unheard, adopt=False)
    await bench.runner.clean_up(bench.device_id, 1, stay_awake=True)
    assert screen.read_text() == "15\n"
    await bench.runner.keep_ready(bench.device_id, lambda: not next_comes)
    assert screen.read_text() == ("15\n" if next_comes else "3\n")


async def test_a_phone_that_cannot_be_cleaned_is_not_called_online_for_long(bench: Bench) -> None:
    await bench.phone()
    await bench.detach()
    clearing = asyncio.create_task(bench.runner.clean_up(bench.device_id, 1))
    async with asyncio.timeout(120):
        while bench.monitor.find(bench.device_id) is not None:
            bench.active.changed.clear()
            await bench.active.changed.wait()
    await bench.attach()
    await clearing
    assert await bench.phone()


@pytest.fixture
def phone_alone(tmp_path: Path) -> Iterator[VirtualDeviceHandle]:
    """One with a CPU of its own, as phones have."""
    yield start_devices(1, tmp_path / "alone", shared_cpu=False)[0]
    stop_devices(tmp_path / "alone")


async def test_no_one_looks_at_a_phone_while_a_run_is_measured_there(
    tmp_path: Path, phone_alone: VirtualDeviceHandle
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    async with benched(tmp_path, phone_alone, interval_s=0.2) as bench:
        await bench.phone()
        bench.adb.asked = 0
        await comes_true(lambda: bench.adb.asked >= 3, "one that has nothing to do is looked at")
        entry = bench.entry(1, f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done")
        bench.active.add(entry)
        run = asyncio.create_task(bench.runner.run(entry, unheard, adopt=False))
        await comes_true(begun.exists, "the run begins")
        await comes_true(lambda: "set -- wait " in bench.adb.last_command, "its end is waited for")
        bench.adb.asked = 0
        assert not await ends_within(run, 2.0)
        assert bench.adb.asked == 0
        go.touch()
        await run
