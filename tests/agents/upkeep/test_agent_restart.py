"""A ladder whose agent is killed: the next life knows what was tried, and restarts nothing too early."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle, start_devices
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import RecoveryStep
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.recovery_fixture import QUICK, RunningLadder, boots_of, running_ladder
from tests.support.agents.runner_fixture import Bench, benched

pytestmark = [pytest.mark.anyio, pytest.mark.invariant("I18")]

STUCK = Faults(mode="recovery", reboot_s=0.2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The agent's own."""
    folder = tmp_path / "agent"
    folder.mkdir()
    return folder


@pytest.fixture
def second(tmp_path: Path, phone: VirtualDeviceHandle) -> Iterator[VirtualDeviceHandle]:
    """Another phone of the host; `phone` ends both."""
    second = start_devices(2, tmp_path / "phones")[1]
    yield second
    set_faults(second.state, Faults())


async def restarted_once(episode: RunningLadder) -> None:
    """Have a restart that changes nothing, and end this life as soon as it is seen on the phone."""
    handle = episode.bench.handle
    set_faults(handle.state, STUCK)
    await episode.until(lambda: boots_of(handle) == 1, "the order", allowed=True)


async def test_a_phone_that_was_just_restarted_is_given_its_time_by_the_restarted_agent(
    bench: Bench, folder: Path
) -> None:
    rules = replace(QUICK, restart_s=3.0)
    async with running_ladder(bench, folder, rules, reboot=True) as episode:
        await restarted_once(episode)
    async with running_ladder(bench, folder, rules, are_well=False, reboot=True) as episode:
        assert episode.disturbing == [RecoveryStep.REBOOT]
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert episode.disturbing == [RecoveryStep.REBOOT, RecoveryStep.HUMAN]
    assert boots_of(bench.handle) == 1


async def test_a_life_that_never_saw_the_phone_answer_goes_on_with_it_where_the_last_one_ended(
    phone: VirtualDeviceHandle, tmp_path: Path, folder: Path
) -> None:
    """On TCP nothing but what was written down says which phone it is that greets as another mode."""
    rules = replace(QUICK, restart_s=3.0, absent_s=30.0)
    async with (
        benched(tmp_path / "first", phone) as bench,
        running_ladder(bench, folder, rules, reboot=True) as episode,
    ):
        await restarted_once(episode)
    async with (
        benched(tmp_path / "second", phone) as bench,
        running_ladder(bench, folder, rules, are_well=False, reboot=True) as episode,
    ):
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert episode.disturbing == [RecoveryStep.REBOOT, RecoveryStep.HUMAN]
        assert episode.ladder.observations()[bench.device_id].presence is Presence.WRONG_MODE
    assert boots_of(phone) == 1


async def test_a_phone_that_was_well_between_two_lives_is_not_restarted_before_its_time(
    bench: Bench, folder: Path
) -> None:
    async with running_ladder(bench, folder, reboot=True) as episode:
        await restarted_once(episode)
        set_faults(bench.handle.state, Faults())
        await episode.until(episode.is_online, "it is back")
    async with running_ladder(bench, folder, reboot=True) as episode:
        await episode.until(lambda: episode.recovery is None, "it is well in this life, too")
        set_faults(bench.handle.state, STUCK)
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert episode.disturbing == [RecoveryStep.HUMAN]
    assert boots_of(bench.handle) == 1


@pytest.mark.long
async def test_two_phones_of_a_host_are_not_away_for_a_restart_together_though_its_agent_was_another(
    bench: Bench, second: VirtualDeviceHandle, folder: Path
) -> None:
    rules, loop = replace(QUICK, restart_s=6.0), asyncio.get_running_loop()
    async with running_ladder(bench, folder, rules, beside=[second], reboot=True) as episode:
        before_s = loop.time()
        await restarted_once(episode)
    async with running_ladder(bench, folder, rules, beside=[second], are_well=False, reboot=True) as episode:
        set_faults(second.state, STUCK)
        await episode.until(lambda: boots_of(second) == 1, "its turn", allowed=True)
        assert loop.time() - before_s >= rules.restart_s
    assert boots_of(bench.handle) == 1


async def test_a_recovery_that_is_over_leaves_no_saved_state(bench: Bench, folder: Path) -> None:
    async with running_ladder(bench, folder) as episode:
        set_faults(bench.handle.state, Faults(exit1=True))
        bench.monitor.reprobe(bench.device_id)
        await episode.until(lambda: bool(episode.steps), "a step")
        await comes_true(lambda: bench.handle.serial in kept(folder), "it is written down")
        set_faults(bench.handle.state, Faults())
        await episode.until(episode.is_online, "it is back")
        await comes_true(lambda: bench.handle.serial not in kept(folder), "it is forgotten")


def kept(folder: Path) -> str:
    path = folder / "recovery.json"
    return path.read_text() if path.exists() else ""
