"""The saved recovery state: times mean the same in the next process, whatever restarted in between."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.devices.inventory import TransportObservation
from agents.host.atomic_file import DiskThread
from agents.upkeep.recovery_state import (
    FILE,
    INTERRUPTED,
    DeviceRecoveryState,
    RecoveryStateStore,
    SavedRecovery,
    restore_recovery,
)
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import (
    DEFAULT_RULES,
    FailureMode,
    RecoveryAttempt,
    RecoveryEpisode,
    RecoveryStep,
    next_step,
)
from tests.support.fake_clock import FakeClock

pytestmark = pytest.mark.invariant("I18")

AT = datetime(2026, 11, 20, 11, 59, tzinfo=UTC)
TRIED = RecoveryAttempt(step=RecoveryStep.REBOOT, at=AT, result="it accepted the command to restart")
KEPT = SavedRecovery(
    device_id=DeviceId("shelf-3"),
    serial="0a1b2c",
    usb_path="1-1.4",
    episode=RecoveryEpisode(
        failure_mode=FailureMode.BOOTING,
        since_s=0.0,
        steps=(RecoveryStep.REBOOT,),
        last_step_at_s=940.0,
        boots=2,
    ),
    tries=(TRIED,),
    begun=None,
    step_started_at_s=None,
    restarted_at_s=940.0,
    failures=1,
    failed_at_s=None,
)
Memory = Callable[[FakeClock, str], RecoveryStateStore]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Makes the memory of one life; all lives have one folder."""
    disk = DiskThread()
    yield lambda clock, boot: RecoveryStateStore(tmp_path, disk, clock, host_boot_id=boot)
    disk.close()


def save(memory: RecoveryStateStore, *episodes: SavedRecovery) -> None:
    asyncio.run(memory.save(episodes))


def load(memory: RecoveryStateStore) -> tuple[SavedRecovery, ...]:
    return asyncio.run(memory.load())


def restarted_at_s(memory: RecoveryStateStore) -> float:
    (found,) = load(memory)
    assert found.episode is not None
    assert found.restarted_at_s is not None
    assert found.episode.last_step_at_s == found.restarted_at_s
    return found.restarted_at_s


def test_the_next_life_on_the_same_boot_reads_what_was_written(memory: Memory) -> None:
    clock = FakeClock()
    save(memory(clock, "one"), KEPT)
    clock.advance(20)
    clock.jump(86400)
    assert load(memory(clock, "one")) == (KEPT,)


@pytest.mark.fault(49)
@pytest.mark.parametrize("jump_s", [0.0, 300.0, 86400.0, -86400.0])
def test_no_wall_clock_shortens_or_prolongs_a_wait_after_a_restart_of_the_host(
    memory: Memory, jump_s: float
) -> None:
    before, after = FakeClock(), FakeClock()
    before.advance(5000)
    save(memory(before, "one"), KEPT)
    after.jump(jump_s)
    at_s = restarted_at_s(memory(after, "two"))
    # 5060 s before it was written, on a clock that stands at 1000 now.
    assert at_s == 1000.0 - 5060


def test_a_system_that_does_not_tell_its_boots_apart_keeps_no_one_waiting_for_ever(memory: Memory) -> None:
    before, after = FakeClock(), FakeClock()
    before.advance(10**6)
    save(memory(before, "unknown"), KEPT)
    after.jump(10**6 + 300)
    at_s = restarted_at_s(memory(after, "unknown"))
    assert at_s < 1000.0


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"episodes": [1]}', b"\xff\x00"])
def test_a_file_that_is_none_is_put_aside_and_nothing_is_recalled(
    memory: Memory, tmp_path: Path, raw: bytes
) -> None:
    (tmp_path / FILE).write_bytes(raw)
    assert load(memory(FakeClock(), "one")) == ()
    assert (tmp_path / FILE).with_suffix(".unreadable").read_bytes() == raw
    assert not (tmp_path / FILE).exists()


def test_nothing_is_written_where_nothing_changed(memory: Memory, tmp_path: Path) -> None:
    clock = FakeClock()
    save(memory(clock, "one"), KEPT)
    written = (tmp_path / FILE).stat().st_ino
    life = memory(clock, "one")
    load(life)
    save(life, KEPT)
    assert (tmp_path / FILE).stat().st_ino == written
    save(life)
    assert json.loads((tmp_path / FILE).read_text())["episodes"] == []


@given(passed_s=st.floats(0, 3000), restart=st.sampled_from([RecoveryStep.REBOOT, RecoveryStep.POWER_CYCLE]))
def test_a_restart_that_was_begun_holds_back_the_next_step_and_every_other_phone_as_long_as_one_that_ended(
    passed_s: float, restart: RecoveryStep
) -> None:
    state = DeviceRecoveryState(
        observation=TransportObservation(serial="0a1b2c", presence=Presence.WRONG_MODE)
    )
    state.episode = RecoveryEpisode(failure_mode=FailureMode.WRONG_MODE, since_s=0.0)
    state.running_step, state.running_since_s = restart, 1000.0
    kept = state.find_saved_recovery(DeviceId("shelf-3"), DEFAULT_RULES, 1000.0)
    assert kept is not None
    now_s = 1000.0 + passed_s
    found = restore_recovery(kept, DEFAULT_RULES, now_s=now_s, now=AT)
    assert found.episode is not None
    assert [(each.step, each.result) for each in found.tries] == [(restart, INTERRUPTED)]
    assert found.is_restarting(DEFAULT_RULES, now_s) is (now_s - 1000.0 < DEFAULT_RULES.restart_s)
    later_s = now_s + DEFAULT_RULES.wrong_mode_s + 1.0
    is_due = later_s - 1000.0 >= DEFAULT_RULES.restart_s
    assert next_step(found.episode, DEFAULT_RULES, now_s=later_s) is (RecoveryStep.HUMAN if is_due else None)


def test_a_restart_that_was_begun_on_a_phone_that_was_well_by_then_counts_too() -> None:
    state = DeviceRecoveryState(observation=TransportObservation(serial="0a1b2c", presence=Presence.ONLINE))
    state.running_step, state.running_since_s = RecoveryStep.REBOOT, 1000.0
    kept = state.find_saved_recovery(DeviceId("shelf-3"), DEFAULT_RULES, 1000.0)
    assert kept is not None
    assert restore_recovery(kept, DEFAULT_RULES, now_s=1001.0, now=AT).is_restarting(DEFAULT_RULES, 1001.0)


def test_what_holds_no_one_back_any_more_is_not_kept() -> None:
    state = DeviceRecoveryState(
        observation=TransportObservation(serial="0a1b2c", presence=Presence.ONLINE), restarted_at_s=1000.0
    )
    identity = DeviceId("shelf-3")
    assert (
        state.find_saved_recovery(identity, DEFAULT_RULES, 1000.0 + DEFAULT_RULES.cooldown_s - 1) is not None
    )
    assert state.find_saved_recovery(identity, DEFAULT_RULES, 1000.0 + DEFAULT_RULES.cooldown_s) is None
