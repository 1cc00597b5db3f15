"""The ladder of recovery with virtual phones behind a real adb server: each step, and what is against it."""

import asyncio
import json
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from agents.devices.inventory import TransportObservation
from agents.host.config import AgentConfig
from agents.upkeep.recovery_ladder import PORTS_FILE, RecoveryActions
from agents.virtual.faults import Faults, set_faults
from farm.clock import SystemClock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.errors import HostError
from farm.core.upkeep.recovery import RecoveryStep
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.recovery_fixture import QUICK, boots_of, running_ladder
from tests.support.agents.runner_fixture import Bench

pytestmark = pytest.mark.anyio


@pytest.mark.fault(7, 8)
async def test_a_phone_that_answers_nothing_is_asked_again_reconnected_cleaned_and_then_someone_is_called(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path) as episode:
        set_faults(bench.handle.state, Faults(exit1=True))
        bench.monitor.reprobe(bench.device_id)
        await episode.until(lambda: len(episode.steps) == 2, "two steps")
        assert episode.steps == [RecoveryStep.REPROBE, RecoveryStep.RECONNECT]
        assert episode.said(RecoveryStep.RECONNECT) == "reconnected by adb"
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert episode.steps[2:] == [RecoveryStep.CLEAN, RecoveryStep.HUMAN]
        set_faults(bench.handle.state, Faults())
        await episode.until(episode.is_online, "it is back")
        await episode.until(lambda: episode.recovery is None, "the recovery is over")


@pytest.mark.invariant("I14")
@pytest.mark.fault(8)
async def test_no_step_that_disturbs_is_taken_without_the_farms_permission(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path, reboot=True) as episode:
        boots = boots_of(bench.handle)
        set_faults(bench.handle.state, Faults(mode="recovery"))
        await episode.until(
            lambda: episode.recovery is not None and episode.recovery.needs_approval, "it asks"
        )
        assert not await episode.check_again()
        assert (episode.disturbing, boots_of(bench.handle)) == ([], boots)
        # An answer that does not name it takes the leave back.
        episode.allow()
        episode.ladder.record_permission([], SystemClock().monotonic())
        assert not await episode.check_again()
        assert (episode.disturbing, boots_of(bench.handle)) == ([], boots)


@pytest.mark.invariant("I14")
async def test_a_phone_with_a_run_that_the_farm_has_not_heard_the_end_of_is_not_restarted(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path, reboot=True) as episode:
        held = bench.active.add(bench.entry(1, "true"))
        set_faults(bench.handle.state, Faults(mode="recovery", ends_with_reboot=1))
        boots = boots_of(bench.handle)
        await episode.until(
            lambda: episode.recovery is not None and episode.recovery.needs_approval, "it asks"
        )
        episode.allow()
        assert not await episode.check_again()
        assert boots_of(bench.handle) == boots
        held.acknowledged = True
        await episode.until(episode.is_online, "it is back", allowed=True)
        assert boots_of(bench.handle) == boots + 1


@pytest.mark.fault(15)
async def test_a_phone_in_recovery_is_restarted_into_android_where_that_is_allowed(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path, reboot=True) as episode:
        set_faults(bench.handle.state, Faults(mode="recovery", ends_with_reboot=1, reboot_s=0.2))
        await episode.until(lambda: RecoveryStep.REBOOT in episode.steps, "the order", allowed=True)
        await episode.until(episode.is_online, "it is back")
        await episode.until(lambda: episode.recovery is None, "the recovery is over")


@pytest.mark.long
@pytest.mark.fault(15)
async def test_a_phone_in_recovery_that_may_not_be_restarted_is_left_to_someone(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path) as episode:
        boots = boots_of(bench.handle)
        set_faults(bench.handle.state, Faults(mode="recovery", ends_with_reboot=1))
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert (episode.disturbing, boots_of(bench.handle)) == ([RecoveryStep.HUMAN], boots)


@pytest.mark.long
@pytest.mark.fault(5)
async def test_a_phone_that_restarts_unexpectedly_is_not_restarted_by_us(
    bench: Bench, tmp_path: Path
) -> None:
    rules = replace(QUICK, booting_s=2.0, boot_loop=1)
    async with running_ladder(bench, tmp_path, rules, reboot=True) as episode:
        set_faults(bench.handle.state, Faults(boot_loop=True, reboot_s=0.1))
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert RecoveryStep.REBOOT not in episode.steps


@pytest.mark.fault(6)
async def test_a_phone_that_wants_our_key_is_not_recovered(bench: Bench, tmp_path: Path) -> None:
    async with running_ladder(bench, tmp_path, reboot=True) as episode:
        set_faults(bench.handle.state, Faults(unauthorized=True))
        await episode.until(
            lambda: bench.monitor.observations()[bench.device_id].presence is Presence.UNAUTHORIZED, "it asks"
        )
        for _ in range(30):
            episode.allow()
            await asyncio.sleep(0.05)
            assert episode.recovery is None


@pytest.mark.long
@pytest.mark.fault(14)
async def test_a_phone_that_cannot_be_cleaned_is_restarted_and_clean_after_that(
    bench: Bench, tmp_path: Path
) -> None:
    async with running_ladder(bench, tmp_path, reboot=True) as episode:
        boots = boots_of(bench.handle)
        until_next_boot(bench, 'case "$*" in *runs/7) exit 1 ;; esac')
        await bench.runner.run(bench.entry(7, "true"), heard, adopt=False)
        cleared = asyncio.create_task(bench.runner.clean_up(bench.device_id, 7))
        await episode.until(lambda: RecoveryStep.REBOOT in episode.steps, "the order", allowed=True)
        await cleared
        assert boots_of(bench.handle) == boots + 1
        bench.active.record_cleaned(bench.device_id, 7)
        await episode.until(lambda: episode.recovery is None, "the recovery is over")


async def test_a_phone_that_adb_no_longer_lists_has_its_port_switched_off_and_on(
    bench: Bench, tmp_path: Path
) -> None:
    command = switch(tmp_path, bench)
    async with running_ladder(bench, tmp_path, power_command=command) as episode:
        set_faults(bench.handle.state, Faults(vanish=True))
        await episode.until(lambda: RecoveryStep.POWER_CYCLE in episode.steps, "the port", allowed=True)
        await episode.until(episode.is_online, "it is back")
        assert (tmp_path / "switched").read_text().split() == ["off", "on"]
        assert not (tmp_path / PORTS_FILE).exists()


async def test_a_port_that_an_agent_left_off_is_switched_on_by_the_next(bench: Bench, tmp_path: Path) -> None:
    command = switch(tmp_path, bench)
    (tmp_path / PORTS_FILE).write_text(json.dumps([{"serial": "gone", "usb_path": None}]))
    async with running_ladder(bench, tmp_path, power_command=command):
        await comes_true(lambda: not (tmp_path / PORTS_FILE).exists(), "the port is on")
    assert (tmp_path / "switched").read_text().split() == ["on"]


async def test_a_port_that_stays_off_is_a_failed_step_and_no_other_port_is_forgotten(
    bench: Bench, tmp_path: Path
) -> None:
    settings = {"data_dir": tmp_path, "power_command": "/bin/sh -c 'test {action} = off'"}
    config = AgentConfig.model_validate(settings)
    (tmp_path / PORTS_FILE).write_text(json.dumps([{"serial": "left-off", "usb_path": None}]))
    actions = RecoveryActions(
        adb=bench.adb, monitor=bench.monitor, active=bench.active, config=config, off_s=0.0
    )
    gone = TransportObservation(serial="gone", presence=Presence.ABSENT)
    with pytest.raises(HostError, match="gone"):
        await actions.execute(RecoveryStep.POWER_CYCLE, DeviceId("gone"), gone, None)
    recorded = json.loads((tmp_path / PORTS_FILE).read_text())
    assert [port["serial"] for port in recorded] == ["gone", "left-off"]


@pytest.mark.fault(17)
async def test_phones_behind_a_server_that_is_away_are_not_recovered(bench: Bench, tmp_path: Path) -> None:
    async with running_ladder(bench, tmp_path) as episode:
        bench.monitor.record_server_down()
        for _ in range(20):
            await asyncio.sleep(0.05)
            bench.monitor.record_server_down()
            assert episode.recovery is None


@pytest.mark.long
@pytest.mark.fault(7)
async def test_a_hung_phone_is_called_at_most_once_a_second_during_recovery(
    bench: Bench, tmp_path: Path
) -> None:
    rules = replace(QUICK, offline_s=1.0, step_interval_s=1.5)
    async with running_ladder(bench, tmp_path, rules) as episode:
        set_faults(bench.handle.state, Faults(exit1=True))
        bench.adb.asked = 0
        began_s = asyncio.get_running_loop().time()
        bench.monitor.reprobe(bench.device_id)
        await episode.until(episode.has_failed, "the end", allowed=True)
        assert bench.adb.asked <= asyncio.get_running_loop().time() - began_s + 1


@pytest.mark.long
async def test_connecting_again_drops_the_connection(bench: Bench) -> None:
    """Who is kept connected, or is on USB, is back a moment later."""
    await bench.phone()
    address, states = bench.handle.address, list[str | None]()
    async with asyncio.timeout(120), aclosing(bench.adb.track_devices()) as listings:
        async for state_by_serial in listings:
            states.append(state_by_serial.get(address))
            if len(states) == 1:
                await bench.adb.device(address).reconnect(10.0)
            else:
                break
    assert states[0] == "device"
    assert states[1] != "device"


async def heard(*_: object) -> None:
    """Nobody writes anything down."""


def until_next_boot(bench: Bench, script: str) -> None:
    """Have the phone's rm be otherwise as long as it does not restart."""
    state = bench.handle.state
    boot = (state / "boot_id").read_text().strip()
    remover = state / "bin" / "rm"
    lines = [
        "#!/bin/sh",
        f'if [ "$(cat {state}/boot_id)" = {boot} ]; then',
        script,
        "fi",
        'exec /bin/rm "$@"',
    ]
    remover.write_text("\n".join(lines) + "\n")
    remover.chmod(0o755)


def switch(folder: Path, bench: Bench) -> str:
    """A command that notes what it was told, and gives the phone its life with its power."""
    program, faults = folder / "switch.py", bench.handle.state / "faults.json"
    program.write_text(
        f"import sys\nfrom pathlib import Path\nnote = Path({str(folder / 'switched')!r})\n"
        "note.write_text((note.read_text() if note.exists() else '') + sys.argv[1] + '\\n')\n"
        f"if sys.argv[1] == 'on': Path({str(faults)!r}).write_text('{{}}')\n"
    )
    return f"{sys.executable} {program} {{action}} {{serial}}"
