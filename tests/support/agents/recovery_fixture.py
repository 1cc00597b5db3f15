"""A ladder of recovery at work on the phones of a bench."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.host.atomic_file import DiskThread
from agents.host.config import AgentConfig
from agents.upkeep.recovery_ladder import RecoveryLadder, recovery_rules
from agents.upkeep.recovery_state import RecoveryStateStore
from agents.virtual.pool import VirtualDeviceHandle
from farm.clock import SystemClock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import HARMLESS, Recovery, RecoveryRules, RecoveryStep
from tests.support.agents.fake_farm import comes_true
from tests.support.agents.runner_fixture import Bench

QUICK = RecoveryRules(
    offline_s=0.2,
    booting_s=1.0,
    wrong_mode_s=0.2,
    absent_s=0.5,
    unclean_s=0.2,
    step_interval_s=0.4,
    restart_s=30.0,
)


class _Over(Exception):
    """The test is."""


@dataclass(frozen=True)
class RunningLadder:
    """A ladder at work; what is asked without a phone's name is of the bench's own."""

    bench: Bench
    ladder: RecoveryLadder
    device_ids: tuple[DeviceId, ...]

    @property
    def recovery(self) -> Recovery | None:
        return self.recovery_of(self.bench.device_id)

    def recovery_of(self, identity: DeviceId) -> Recovery | None:
        found = self.ladder.observations().get(identity)
        return found.recovery if found else None

    @property
    def steps(self) -> list[RecoveryStep]:
        return [each.step for each in self.recovery.tries] if self.recovery else []

    @property
    def disturbing(self) -> list[RecoveryStep]:
        """A phone that changes its mode is offline for a moment, and may be asked anew then."""
        return [step for step in self.steps if step not in HARMLESS]

    def said(self, step: RecoveryStep) -> str:
        assert self.recovery is not None
        return next(each.result for each in self.recovery.tries if each.step is step)

    def allow(self) -> None:
        self.ladder.record_permission(self.device_ids, SystemClock().monotonic())

    async def check_again(self, rounds: int = 10) -> bool:
        """Have the ladder check its devices so many times; whether a step that disturbs was begun."""
        for _ in range(rounds):
            self.ladder.run_once()
            # A step that was started marks its device before it waits for anything.
            await asyncio.sleep(0)
            if self.bench.active.on_device_action:
                return True
        return False

    async def until(self, holds: Callable[[], bool], what: str, *, allowed: bool = False) -> None:
        async with asyncio.timeout(120):
            while not holds():
                if allowed:
                    self.allow()
                await asyncio.sleep(0.05)
        assert holds(), what

    def has_failed(self) -> bool:
        return self.recovery is not None and self.recovery.failed

    def is_online(self) -> bool:
        return self.ladder.observations()[self.bench.device_id].presence is Presence.ONLINE


@asynccontextmanager
async def running_ladder(
    bench: Bench,
    folder: Path,
    rules: RecoveryRules = QUICK,
    *,
    beside: Sequence[VirtualDeviceHandle] = (),
    are_well: bool = True,
    **settings: object,
) -> AsyncIterator[RunningLadder]:
    """One life of a ladder, which ends as it stands: what is in `folder` is all that the next one has.

    Args:
        bench: whose phone, and whose adb server.
        folder: the agent's.
        rules: how patient it is.
        beside: phones that the bench does not keep connected.
        are_well: wait until all phones are online.
        settings: of the agent.
    """
    config, clock, disk = (
        AgentConfig.model_validate({"data_dir": folder, **settings}),
        SystemClock(),
        DiskThread(),
    )
    phones = (bench.device_id, *(DeviceId(each.serial) for each in beside))
    try:
        async with bench.kept(*(each.address for each in beside)), asyncio.TaskGroup() as tasks:
            ladder = RecoveryLadder(
                adb=bench.adb,
                monitor=bench.monitor,
                active=bench.active,
                clock=clock,
                tasks=tasks,
                state_store=RecoveryStateStore(folder, disk, clock, host_boot_id="this boot"),
                rules=recovery_rules(config, rules),
                config=config,
                off_s=0.1,
                interval_s=0.05,
            )
            await ladder.load()
            tasks.create_task(ladder.run())
            for each in phones if are_well else ():
                await comes_true(
                    lambda each=each: bench.monitor.find(each) is not None, "the phone is online"
                )
                await comes_true(lambda each=each: each in ladder.observations(), "the phone is known")
            yield RunningLadder(bench, ladder, phones)
            raise _Over
    except* _Over:
        pass
    finally:
        disk.close()


def boots_of(phone: VirtualDeviceHandle) -> int:
    """How often a phone restarted."""
    path = phone.state / "boots"
    return int(path.read_text()) if path.exists() else 0
