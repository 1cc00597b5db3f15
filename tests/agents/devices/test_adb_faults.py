"""An adb server that is wedged or dies again and again, and phones that answer nothing useful."""

import asyncio
import os
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agents.devices.adb_supervisor import MAX_RESTARTS, RESTART_WINDOW_S, recent_restarts
from agents.virtual.faults import Faults, set_faults
from farm.core.devices.device import Presence
from farm.core.runs.evidence import Evidence
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.runner_fixture import Bench

pytestmark = pytest.mark.anyio


@pytest.mark.fault(17)
async def test_a_wedged_adb_server_is_restarted_and_the_run_behind_it_goes_on(
    bench: Bench, tmp_path: Path
) -> None:
    async with bench.kept() as pressure:
        begun, go = tmp_path / "begun", tmp_path / "go"
        entry = bench.entry(1, f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; echo done")
        entry = replace(entry, plan=replace(entry.plan, timeout_s=60.0))
        await bench.phone()
        asked: list[int] = []

        async def noted(phase: object, evidence: Evidence) -> None:
            asked.append(bench.adb.asked)

        run = asyncio.create_task(bench.runner.run(entry, noted, adopt=False))
        await comes_true(begun.exists, "the run begins")
        # Two calls start it. Their answers, where they are lost, are no absence: they are asked for again.
        await comes_true(lambda: bench.adb.asked >= asked[-1] + 3, "the run is waited for")
        wedged = bench.server.pid
        assert wedged is not None
        os.kill(wedged, signal.SIGSTOP)
        await comes_true(lambda: bench.server.pid not in (None, wedged), "another server runs")
        go.touch()
        evidence = await run
        assert isinstance(evidence, Evidence)
        assert (evidence.error, evidence.stdout) == (None, "done\n")
        assert evidence.away_s > 0
        assert pressure.reason is None


@pytest.mark.fault(17)
async def test_a_host_whose_adb_server_does_not_answer_says_so_until_it_does(bench: Bench) -> None:
    told: list[str | None] = []
    async with bench.kept(ping_s=0.2) as pressure:
        await bench.phone()
        assert bench.server.pid is not None
        os.kill(bench.server.pid, signal.SIGSTOP)
        await comes_true(lambda: bool(told.append(pressure.reason) or pressure.reason), "pressure")
        await comes_true(lambda: pressure.reason is None, "the next server answers")
    assert told[-1] == "adb's server does not answer"


@pytest.mark.fault(18)
@pytest.mark.invariant("I15")
async def test_an_adb_server_that_dies_again_and_again_stops_new_work_and_blames_no_phone(
    bench: Bench,
) -> None:
    async with bench.kept() as pressure:
        for _ in range(MAX_RESTARTS + 1):
            await bench.phone()
            assert pressure.reason is None
            died = bench.server.pid
            assert died is not None
            os.kill(died, signal.SIGKILL)
            await comes_true(lambda died=died: bench.server.pid not in (None, died), "another server runs")
            await comes_true(lambda: bench.monitor.find(bench.device_id) is not None, "the phone is back")
        await comes_true(lambda: pressure.reason is not None, "the host says so")
        assert pressure.reason == "adb's server had to be restarted more than 5 times in 10 min"
        assert bench.monitor.observations()[bench.device_id].presence is Presence.ONLINE


@pytest.mark.fault(18)
def test_restarts_of_long_ago_do_not_count() -> None:
    assert recent_restarts([0.0, 10.0, RESTART_WINDOW_S], RESTART_WINDOW_S + 5.0) == [10.0, RESTART_WINDOW_S]


@pytest.mark.fault(8)
async def test_a_phone_whose_commands_all_fail_is_not_online_and_is_asked_once_a_second_at_most(
    bench: Bench,
) -> None:
    await bench.phone()
    set_faults(bench.handle.state, Faults(exit1=True))
    bench.adb.asked = 0
    began_s = asyncio.get_running_loop().time()
    for _ in range(8):
        bench.monitor.reprobe(bench.device_id)
        bench.monitor.apply_listing({bench.handle.address: "offline"})
        bench.monitor.apply_listing({bench.handle.address: "device"})
        # Real time: the rate is what is tested, and the phone's side of it is a process.
        await asyncio.sleep(0.4)
    lasted_s = asyncio.get_running_loop().time() - began_s
    assert bench.monitor.observations()[bench.device_id].presence is not Presence.ONLINE
    assert 1 <= bench.adb.asked <= lasted_s + 1


@pytest.mark.long
@pytest.mark.fault(8)
async def test_a_phone_whose_commands_all_fail_is_asked_with_increasing_back_off(bench: Bench) -> None:
    await bench.phone()
    set_faults(bench.handle.state, Faults(exit1=True))
    bench.monitor.reprobe(bench.device_id)
    loop, times_s = asyncio.get_running_loop(), list[float]()
    await comes_true(lambda: presence_of(bench) is not Presence.ONLINE, "the phone is doubted")
    async with asyncio.timeout(120):
        # Three times as long as the first pause.
        while not (pauses_s := gaps(times_s)) or pauses_s[-1] < 6.0:
            asked = bench.adb.asked
            await comes_true(lambda asked=asked: bench.adb.asked > asked, "it is asked again")
            times_s.append(loop.time())
    assert len(times_s) >= 3


@pytest.mark.fault(5)
async def test_a_phone_in_a_boot_loop_is_booting_and_is_asked_once_a_second_at_most(bench: Bench) -> None:
    await bench.phone()
    async with bench.kept():
        set_faults(bench.handle.state, Faults(boot_loop=True, reboot_s=0.1))
        await comes_true(lambda: bench.monitor.find(bench.device_id) is None, "the phone reboots")
        bench.adb.asked, seen = 0, set[Presence]()
        began_s = asyncio.get_running_loop().time()
        await comes_true(
            lambda: bool(seen.add(presence_of(bench)) or (Presence.BOOTING in seen and boots(bench) >= 2)),
            "the phone is seen booting, and reboots",
        )
        lasted_s = asyncio.get_running_loop().time() - began_s
        assert Presence.ONLINE not in seen
        assert bench.adb.asked <= lasted_s + 1


@pytest.mark.fault(15)
async def test_a_phone_in_recovery_is_in_the_wrong_mode_and_is_asked_nothing(bench: Bench) -> None:
    await bench.phone()
    async with bench.kept():
        set_faults(bench.handle.state, Faults(mode="recovery"))
        await comes_true(lambda: presence_of(bench) is Presence.WRONG_MODE, "the phone is in recovery")
        bench.adb.asked = 0
        # Nothing tells of what is not asked: as long as several probes of a phone that answers would take.
        await asyncio.sleep(0.5)
        assert bench.adb.asked == 0


@pytest.mark.fault(6)
async def test_a_phone_that_wants_our_key_is_left_alone_and_says_which_key_to_allow(bench: Bench) -> None:
    await bench.phone()
    async with bench.kept():
        set_faults(bench.handle.state, Faults(unauthorized=True))
        await comes_true(lambda: presence_of(bench) is Presence.UNAUTHORIZED, "the phone asks for a key")
        bench.adb.asked = 0
        detail = bench.monitor.observations()[bench.device_id].detail
        assert detail in (
            "adb state: unauthorized; allow the key AA:BB on its screen",
            "adb state: authorizing; allow the key AA:BB on its screen",
        )
        # Nothing tells of what is not asked: as long as several probes of a phone that answers would take.
        await asyncio.sleep(0.5)
        assert bench.adb.asked == 0
        set_faults(bench.handle.state, Faults())
        await bench.phone()


def gaps(times_s: list[float]) -> list[float]:
    return [late - early for early, late in pairwise(times_s)]


def presence_of(bench: Bench) -> Presence:
    return bench.monitor.observations()[bench.device_id].presence


def boots(bench: Bench) -> int:
    return int((bench.handle.state / "boots").read_text())
