"""The recovery state on disk, from which a restarted agent continues."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import TypeAdapter, ValidationError

from agents.host.atomic_file import DiskThread, translate_disk_errors, write_file_durably
from agents.host.data_dir import find_file
from farm.clock import Clock
from farm.core.base.ids import DeviceId
from farm.core.errors import HostDiskFull
from farm.core.upkeep.recovery import RecoveryAttempt, RecoveryEpisode, RecoveryStep

log = structlog.get_logger(__name__)

#: In the data folder.
FILE = "recovery.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRecovery:
    """The recovery state of one device. Times are seconds on the agent's own clock."""

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
    #: How often in a row an operator was needed, and when last.
    failures: int
    failed_at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecoveryStateFile:
    """The file. Monotonic times restart with each boot of the host; the wall clock relates them."""

    host_boot_id: str
    at: datetime
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
            with suppress(HostDiskFull):
                await self._disk.call(_quarantine, self._path)
            return ()
        self._on_disk = state.episodes
        offset_s = 0.0 if self._is_of_this_boot(state) else self._clock_offset_s(state)
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
            at=self._clock.now(),
            at_s=self._clock.monotonic(),
            episodes=wanted,
        )
        await self._disk.call(write_file_durably, self._path, _STATE_FILE.dump_json(state))
        self._on_disk = wanted

    def _is_of_this_boot(self, state: _RecoveryStateFile) -> bool:
        # Without boot ids, a later time on the clock suggests the same boot.
        return state.host_boot_id == self._host_boot_id and state.at_s <= self._clock.monotonic()

    def _clock_offset_s(self, state: _RecoveryStateFile) -> float:
        """Return the offset to times of another boot; a clock that was set back counts as no time passed."""
        passed_s = max(0.0, (self._clock.now() - state.at).total_seconds())
        return self._clock.monotonic() - passed_s - state.at_s


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


def _quarantine(path: Path) -> None:
    with translate_disk_errors(path):
        path.replace(path.with_suffix(".unreadable"))
