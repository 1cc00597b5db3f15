"""The recovery state on disk, from which a restarted agent continues."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import TypeAdapter, ValidationError

from agents.devices.inventory import TransportObservation
from agents.host.atomic_file import DiskThread, quarantine, write_file_durably
from agents.host.data_dir import find_file
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import (
    RESTARTS,
    FailureMode,
    Recovery,
    RecoveryAttempt,
    RecoveryEpisode,
    RecoveryRules,
    RecoveryStep,
    record_step,
)

log = structlog.get_logger(__name__)

#: In the data folder.
FILE = "recovery.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRecovery:
    """The recovery state of one device in the file. Times are seconds on the agent's own clock."""

    device_id: DeviceId
    #: Its name in adb.
    serial: str
    usb_path: str | None
    episode: RecoveryEpisode | None
    tries: tuple[RecoveryAttempt, ...]
    #: A step that was begun and has no result.
    begun: RecoveryStep | None
    step_started_at_s: float | None
    restarted_at_s: float | None
    #: Number of times in a row that an operator was needed, and the last time.
    failures: int
    failed_at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecoveryStateFile:
    """The file. Monotonic times restart with each boot of the host."""

    host_boot_id: str
    at_s: float
    episodes: tuple[SavedRecovery, ...]


_STATE_FILE = TypeAdapter(_RecoveryStateFile)


class RecoveryStateStore:
    """One file, replaced as a whole whenever the state changes.

    Invariant: a restart is on disk before the device is restarted.
    """

    def __init__(self, data_dir: Path, disk: DiskThread, clock: Clock, *, host_boot_id: str) -> None:
        self._path = data_dir / FILE
        self._disk = disk
        self._clock = clock
        self._host_boot_id = host_boot_id
        self._on_disk: tuple[SavedRecovery, ...] = ()

    async def load(self) -> tuple[SavedRecovery, ...]:
        """Return the saved state, converted to this process's clock; empty where it cannot be read."""
        raw = await self._disk.call(find_file, self._path)
        if raw is None:
            return ()
        try:
            state = _STATE_FILE.validate_json(raw)
        except ValidationError:
            log.exception("recovery_state_unreadable", path=str(self._path))
            await self._disk.call(quarantine, self._path)
            return ()
        self._on_disk = state.episodes
        now_s, offset_s = self._clock.monotonic(), 0.0
        # Without boot ids, a later time on the clock suggests the same boot.
        if state.host_boot_id != self._host_boot_id or state.at_s > now_s:
            # The time that the host was down does not count: only its wall clock would tell how long that
            # was, and one that is wrong after a boot must not shorten a wait. The longest is a day.
            offset_s = now_s - state.at_s
        return tuple(_shift_recovery(recovery, offset_s) for recovery in state.episodes)

    async def save(self, episodes: Sequence[SavedRecovery]) -> None:
        """Save the state; writes only when it has changed.

        Raises:
            HostDiskFull: what was there before stays.
        """
        wanted = tuple(episodes)
        if wanted == self._on_disk:
            return
        state = _RecoveryStateFile(
            host_boot_id=self._host_boot_id,
            at_s=self._clock.monotonic(),
            episodes=wanted,
        )
        await self._disk.call(write_file_durably, self._path, _STATE_FILE.dump_json(state))
        self._on_disk = wanted


def _shift_recovery(recovery: SavedRecovery, by_s: float) -> SavedRecovery:
    episode = recovery.episode and replace(
        recovery.episode,
        since_s=recovery.episode.since_s + by_s,
        last_step_at_s=_shift_time(recovery.episode.last_step_at_s, by_s),
    )
    return replace(
        recovery,
        episode=episode,
        step_started_at_s=_shift_time(recovery.step_started_at_s, by_s),
        restarted_at_s=_shift_time(recovery.restarted_at_s, by_s),
        failed_at_s=_shift_time(recovery.failed_at_s, by_s),
    )


def _shift_time(at_s: float | None, by_s: float) -> float | None:
    return None if at_s is None else at_s + by_s


INTERRUPTED = "interrupted by an agent restart"


@dataclass(slots=True, kw_only=True)
class DeviceRecoveryState:
    """The recovery state of one device of this host, healthy or not."""

    observation: TransportObservation
    #: Empty where adb does not report it, None while it was not queried.
    usb_path: str | None = None
    episode: RecoveryEpisode | None = None
    tries: list[RecoveryAttempt] = field(default_factory=list)
    #: The step that waits for the farm's permission, or for other restarts.
    due_step: RecoveryStep | None = None
    running_step: RecoveryStep | None = None
    running_since_s: float | None = None
    permission_at_s: float | None = None
    restarted_at_s: float | None = None
    #: Calls for an operator in a row, and when the last one was; None once another episode has begun.
    escalations: int = 0
    escalated_at_s: float | None = None
    #: Until then it does not count as absent: adb has yet to list devices that an earlier process knew.
    restart_deadline_s: float = 0.0

    def is_restarting(self, rules: RecoveryRules, now_s: float) -> bool:
        """Return whether it counts among the devices that are away because of a restart."""
        if self.running_step in RESTARTS:
            return True
        at_s = self.restarted_at_s
        return self.episode is not None and at_s is not None and now_s - at_s < rules.restart_s

    def reported(self) -> Recovery | None:
        """Return the recovery to report; None while nothing was done or is due."""
        if self.episode is None or not (self.tries or self.due_step):
            return None
        return Recovery(
            failure_mode=self.episode.failure_mode,
            tries=tuple(self.tries),
            next=self.due_step,
            failed=self.escalated_at_s is not None,
        )

    def find_saved_recovery(
        self, identity: DeviceId, rules: RecoveryRules, now_s: float
    ) -> SavedRecovery | None:
        """Return the state that the next process needs; None where nothing was done that limits it."""
        begun = self.running_step if self.running_step in RESTARTS else None
        restarted_at_s = self.restarted_at_s
        if restarted_at_s is not None and now_s - restarted_at_s >= rules.cooldown_s:
            restarted_at_s = None
        if not (self.tries or begun or self.escalations or restarted_at_s is not None):
            return None
        return SavedRecovery(
            device_id=identity,
            serial=self.observation.serial,
            usb_path=self.usb_path,
            # The start of the current failure mode is observed again; saving it would rewrite the file often.
            episode=self.episode and replace(self.episode, since_s=0.0),
            tries=tuple(self.tries),
            begun=begun,
            step_started_at_s=self.running_since_s if begun else None,
            restarted_at_s=restarted_at_s,
            failures=self.escalations,
            failed_at_s=self.escalated_at_s,
        )


def restore_recovery(
    saved: SavedRecovery, rules: RecoveryRules, *, now_s: float, now: datetime
) -> DeviceRecoveryState:
    """Return the device in the next process: a restart that was begun counts as one, whatever its result."""
    state = DeviceRecoveryState(
        observation=TransportObservation(
            serial=saved.serial, presence=Presence.ABSENT, detail="adb does not list it yet"
        ),
        usb_path=saved.usb_path,
        episode=saved.episode and replace(saved.episode, since_s=now_s),
        tries=list(saved.tries),
        restarted_at_s=saved.restarted_at_s,
        escalations=saved.failures,
        escalated_at_s=saved.failed_at_s,
        restart_deadline_s=now_s + rules.absent_s,
    )
    if saved.begun is not None:
        at_s = now_s if saved.step_started_at_s is None else saved.step_started_at_s
        # It may have recovered before the step was begun.
        episode = state.episode or RecoveryEpisode(failure_mode=FailureMode.ABSENT, since_s=now_s)
        state.episode = record_step(episode, saved.begun, now_s=at_s)
        state.restarted_at_s = at_s
        state.tries.append(RecoveryAttempt(step=saved.begun, at=now, result=INTERRUPTED))
    return state
