"""Runs with controls, and phones that change while they run, from plan to evidence."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.attempts.runner import DeferredRun
from agents.device.control.controls import set_controls
from agents.outbox.attempt_journal import JournalRecord
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.condition import Gates, ThermalStatus
from farm.core.devices.controls import ControlLevel, Controls, Screen, control_deviations, control_level
from farm.core.devices.device import Cluster
from farm.core.runs.evidence import Evidence
from farm.core.runs.throttling import throttling_reasons
from tests.support.agents.device_clocks import set_clock_limit, set_clusters
from tests.support.agents.rooted_device import make_rooted
from tests.support.agents.runner_fixture import Bench, benched, unheard

pytestmark = pytest.mark.anyio
#: One core each: what the machine that tests run on has for sure.
SLOW = Cluster(cores=(0,), min_hz=300_000_000, max_hz=1_500_000_000)
FAST = Cluster(cores=(1,), min_hz=500_000_000, max_hz=2_500_000_000)


@pytest.fixture
async def bench(tmp_path: Path, phone: VirtualDeviceHandle) -> AsyncIterator[Bench]:
    set_clusters(phone.state, [SLOW, FAST])
    async with benched(tmp_path, phone) as bench:
        yield bench


def entry_with(
    bench: Bench, fence: int, script: str, controls: Controls, gates: Gates | None = None
) -> JournalRecord:
    # In a plan a dollar is a placeholder's.
    entry = bench.entry(fence, script.replace("$", "$$"))
    gates = gates or Gates(min_storage_bytes=0, wait_s=0)
    return replace(entry, plan=replace(entry.plan, controls=controls, gates=gates))


def clocks(bench: Bench) -> dict[str, str]:
    files = (bench.handle.state / "sys").rglob("scaling_*")
    return {str(file): file.read_text() for file in files}


async def evidence_of(bench: Bench, entry: JournalRecord) -> Evidence:
    ending = await bench.runner.run(entry, unheard, adopt=False)
    assert isinstance(ending, Evidence), ending
    return ending


async def test_a_run_on_the_fast_cores_with_fixed_clocks_says_so_and_leaves_nothing(bench: Bench) -> None:
    await bench.phone()
    await asyncio.to_thread(make_rooted, bench.handle.state)
    before = clocks(bench)
    controls = Controls(cores="big", governor="performance")
    governor = "$BENCHFARM_SYS/devices/system/cpu/cpufreq/policy1/scaling_governor"
    show = f"cat {governor}; grep Cpus_allowed_list /proc/$$/status"
    evidence = await evidence_of(bench, entry_with(bench, 1, show, controls))
    assert evidence.error is None, evidence.error
    assert evidence.stdout.split() == ["performance", "Cpus_allowed_list:", "1"]
    held = {
        state.name: (state.before, state.actual_before, state.actual_after) for state in evidence.controls
    }
    assert held["cores"] == (None, "1", "1")
    assert held["policy0.governor"] == ("schedutil", "performance", "performance")
    assert control_level(evidence.controls) is ControlLevel.FIXED
    assert evidence.before is not None
    assert [policy.hardware_max_hz for policy in evidence.before.cpus] == [SLOW.max_hz, FAST.max_hz]
    assert clocks(bench) == before


async def test_a_phone_without_root_runs_nothing_at_another_level(bench: Bench) -> None:
    await bench.phone()
    entry = entry_with(bench, 1, "echo ran", Controls(max_hz=1_000_000_000))
    evidence = await evidence_of(bench, entry)
    assert evidence.error is not None
    assert evidence.error.code == "device.control_impossible"
    assert (evidence.exit, evidence.stdout) == (None, "")


@pytest.mark.parametrize("cores", ["prime", "250"])
async def test_a_phone_without_such_cores_runs_nothing_on_others(bench: Bench, cores: str) -> None:
    await bench.phone()
    evidence = await evidence_of(bench, entry_with(bench, 1, "echo ran", Controls(cores=cores)))
    assert evidence.error is not None
    assert evidence.error.code == "device.control_impossible"
    assert evidence.stdout == ""


async def test_a_clock_that_does_not_hold_puts_the_run_off_and_is_put_back(bench: Bench) -> None:
    await bench.phone()
    await asyncio.to_thread(make_rooted, bench.handle.state)
    stuck = bench.handle.state / "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    stuck.unlink()
    # Reads as something, and takes nothing.
    stuck.symlink_to("/proc/sys/kernel/ostype")
    entry = entry_with(
        bench, 1, "echo ran", Controls(max_hz=1_000_000_000), Gates(wait_s=0, full_clocks=False)
    )
    ending = await bench.runner.run(entry, unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert ending.reason.startswith("policy0.max_hz is Linux")
    fast = bench.handle.state / "sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq"
    assert fast.read_text().strip() == "2500000"


async def test_a_clock_that_the_phone_does_not_have_ends_the_job_and_the_others_are_put_back(
    bench: Bench,
) -> None:
    await bench.phone()
    await asyncio.to_thread(make_rooted, bench.handle.state)
    policies = bench.handle.state / "sys/devices/system/cpu/cpufreq"
    (policies / "policy0/scaling_max_freq").unlink()
    entry = entry_with(bench, 1, "echo ran", Controls(max_hz=1_000_000_000), Gates(full_clocks=False))
    ending = await bench.runner.run(entry, unheard, adopt=False)
    assert isinstance(ending, Evidence)
    assert ending.error is not None
    assert ending.error.code == "device.control_impossible"
    assert "policy0.max_hz could not be set" in ending.error.message
    assert (policies / "policy1/scaling_max_freq").read_text().strip() == "2500000"


async def test_controls_of_an_agent_that_died_before_the_run_are_put_back_by_its_next_life(
    bench: Bench,
) -> None:
    await bench.phone()
    await asyncio.to_thread(make_rooted, bench.handle.state)
    before = clocks(bench)

    class Killed(BaseException):
        pass

    async def dies(phase: object, evidence: Evidence) -> None:
        if phase == "measuring":
            raise Killed

    entry = entry_with(bench, 1, "echo ran", Controls(governor="performance"))
    with pytest.raises(Killed):
        await bench.runner.run(entry, dies, adopt=False)
    assert clocks(bench) != before
    await bench.runner_with().clean_up(bench.device_id, 1)
    assert clocks(bench) == before


async def test_controls_of_a_run_that_never_began_are_put_back_at_the_next_contact(bench: Bench) -> None:
    """No token on the phone tells of it, nor does the farm: its agent died, or its cable was pulled."""
    phone = await bench.phone()
    await asyncio.to_thread(make_rooted, bench.handle.state)
    before = clocks(bench)
    await set_controls(phone.adb, 1, Controls(governor="performance"))
    assert clocks(bench) != before
    await bench.come_back()
    assert clocks(bench) == before


async def test_what_was_set_of_screen_and_wakefulness_is_read_back_around_the_run(bench: Bench) -> None:
    await bench.phone()
    (bench.handle.state / "wakefulness").write_text("Asleep\n")
    evidence = await evidence_of(bench, entry_with(bench, 1, "true", Controls()))
    rows = {state.name: (state.requested, state.before, state.actual_before) for state in evidence.controls}
    assert rows == {"stay_awake": ("on", "off", "on"), "screen": ("on", "off", "on")}
    assert {state.actual_after for state in evidence.controls} == {"on"}
    assert control_deviations(evidence.controls) == []
    assert control_level(evidence.controls) is ControlLevel.FREE
    await bench.runner.clean_up(bench.device_id, 1)
    assert (bench.handle.state / "wakefulness").read_text() == "Asleep\n"


async def test_a_screen_that_is_turned_off_in_mid_run_shows_in_what_was_read_back(bench: Bench) -> None:
    await bench.phone()
    script = "input keyevent KEYCODE_SLEEP; settings put global stay_on_while_plugged_in 0"
    evidence = await evidence_of(bench, entry_with(bench, 1, script, Controls()))
    assert control_deviations(evidence.controls) == [
        "stay_awake was off after the run, on was asked for",
        "screen was off after the run, on was asked for",
    ]


async def test_a_phone_that_does_not_stay_awake_puts_the_run_off(bench: Bench) -> None:
    await bench.phone()
    (bench.handle.state / "bin/svc").write_text("#!/bin/sh\n")
    ending = await bench.runner.run(entry_with(bench, 1, "true", Controls()), unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert ending.reason == "it is not set to stay awake while it is plugged in"
    left = await evidence_of(bench, entry_with(bench, 2, "true", Controls(stay_awake=False)))
    assert [state.name for state in left.controls] == ["screen"]


async def changed_while_it_runs(bench: Bench, entry: JournalRecord, faults: Faults) -> Evidence:
    """Have the phone change in the middle of a run that goes on until the phone itself shows it."""
    running = asyncio.create_task(evidence_of(bench, entry))
    await begun(bench, running)
    set_faults(bench.handle.state, faults)
    return await running


async def begun(bench: Bench, running: asyncio.Task[Evidence]) -> None:
    """Wait until a run has written so in the phone's home."""
    mark = bench.handle.state / "data/begun"
    async with asyncio.timeout(120):
        while not mark.exists():
            await asyncio.wait({running}, timeout=0.05)


@pytest.mark.fault(46)
async def test_a_phone_that_heats_up_in_mid_run_shows_it_and_keeps_the_next_run_waiting(bench: Bench) -> None:
    await bench.phone()
    script = ": >$HOME/begun; until dumpsys thermalservice | grep -q 'Thermal Status: 3'; do sleep 0.05; done"
    entry = entry_with(bench, 1, script, Controls())
    evidence = await changed_while_it_runs(bench, entry, Faults(thermal_status=3, skin_c=47.0))
    assert evidence.exit is not None
    assert evidence.after is not None
    assert evidence.after.thermal_status is ThermalStatus.SEVERE
    assert list(throttling_reasons(evidence, entry.plan.gates)) == [
        "thermal status SEVERE after the run, at most NONE"
    ]
    await bench.runner.clean_up(bench.device_id, 1)
    ending = await bench.runner.run(entry_with(bench, 2, "true", Controls()), unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert "thermal status SEVERE" in ending.reason


@pytest.mark.long
@pytest.mark.fault(46)
async def test_a_clock_that_is_limited_in_mid_run_shows_and_keeps_the_next_run_waiting(
    bench: Bench,
) -> None:
    await bench.phone()
    limit = "$BENCHFARM_SYS/devices/system/cpu/cpufreq/policy1/scaling_max_freq"
    script = f": >$HOME/begun; until grep -q 1900000 {limit}; do sleep 0.05; done"
    entry = entry_with(bench, 1, script, Controls())
    running = asyncio.create_task(evidence_of(bench, entry))
    await begun(bench, running)
    set_clock_limit(bench.handle.state, "policy1", 1_900_000_000)
    shown = list(throttling_reasons(await running, entry.plan.gates))
    assert shown == ["policy1 is limited to 1.90 of 2.50 GHz after the run"]
    await bench.runner.clean_up(bench.device_id, 1)
    ending = await bench.runner.run(entry_with(bench, 2, "true", Controls()), unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert ending.reason == "policy1 is limited to 1.90 of 2.50 GHz"


@pytest.mark.long
@pytest.mark.fault(47)
async def test_a_charger_that_is_pulled_in_mid_run_shows_and_keeps_the_next_run_waiting(bench: Bench) -> None:
    await bench.phone()
    script = ": >$HOME/begun; while dumpsys battery | grep -q 'AC powered: true'; do sleep 0.05; done"
    gates = Gates(min_storage_bytes=0, wait_s=0, mains=True)
    entry = entry_with(bench, 1, script, Controls(), gates)
    evidence = await changed_while_it_runs(bench, entry, Faults(charging=False))
    assert evidence.before is not None
    assert evidence.after is not None
    assert (evidence.before.plugged, evidence.after.plugged) == ("ac", "none")
    await bench.runner.clean_up(bench.device_id, 1)
    ending = await bench.runner.run(entry_with(bench, 2, "true", Controls(), gates), unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert "not plugged in" in ending.reason


def be_seen(bench: Bench, wakefulness: str, *, wakes: bool) -> None:
    """Have the phone say whether it is awake, and the wake key do something, or nothing."""
    shown = bench.handle.state / "dumpsys/power"
    shown.write_text(f"  mWakefulness={wakefulness}\n")
    key = bench.handle.state / "bin/input"
    key.write_text(f"#!/bin/sh\necho '  mWakefulness=Awake' >'{shown}'\n" if wakes else "#!/bin/sh\n")
    key.chmod(0o755)


async def test_a_screen_that_someone_turned_off_is_turned_on_again_before_the_next_run(bench: Bench) -> None:
    await bench.phone()
    be_seen(bench, "Asleep", wakes=True)
    evidence = await evidence_of(bench, entry_with(bench, 1, "true", Controls()))
    assert evidence.before is not None
    assert evidence.before.screen_on is True
    # Later, on a phone that is known to be kept awake.
    await bench.runner.clean_up(bench.device_id, 1, stay_awake=True)
    (await bench.phone()).state_cache.take_preflight(0.0)
    be_seen(bench, "Asleep", wakes=True)
    evidence = await evidence_of(bench, entry_with(bench, 2, "true", Controls()))
    assert evidence.before is not None
    assert evidence.before.screen_on is True


async def test_a_run_does_not_begin_while_the_screen_stays_off(bench: Bench) -> None:
    await bench.phone()
    be_seen(bench, "Asleep", wakes=False)
    ending = await bench.runner.run(entry_with(bench, 1, "true", Controls()), unheard, adopt=False)
    assert isinstance(ending, DeferredRun)
    assert ending.reason == "the screen is off, it must be on"


async def test_a_matrix_that_leaves_the_screen_as_it_is_found_neither_waits_nor_wakes(bench: Bench) -> None:
    await bench.phone()
    be_seen(bench, "Asleep", wakes=True)
    controls = Controls(screen=Screen.LEAVE, stay_awake=False)
    evidence = await evidence_of(bench, entry_with(bench, 1, "true", controls))
    assert evidence.after is not None
    assert evidence.after.screen_on is False
