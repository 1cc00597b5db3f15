"""The recovery state of one device, in memory and as saved."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.devices.inventory import TransportObservation
from agents.upkeep.recovery_state import SavedRecovery
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

INTERRUPTED = "interrupted by an agent restart"


@dataclass(slots=True, kw_only=True)
class RecoveringDevice:
    """One device of this host, since this process or the one before first saw it."""

    observation: TransportObservation
    #: Empty where adb does not report it, None while it was not queried.
    usb_path: str | None = None
    episode: RecoveryEpisode | None = None
    tries: list[RecoveryAttempt] = field(default_factory=list)
    #: The step that waits for the farm's permission, or for other restarts.
    next: RecoveryStep | None = None
    #: The running step, and since when.
    now: RecoveryStep | None = None
    step_running_since_s: float | None = None
    permission_at_s: float | None = None
    restarted_at_s: float | None = None
    failures: int = 0
    failed_at_s: float | None = None
    #: Until then it does not count as absent: adb has yet to list devices that an earlier process knew.
    restart_deadline_s: float = 0.0

    def is_restarting(self, rules: RecoveryRules, now_s: float) -> bool:
        """Return whether it counts among the devices that are away because of a restart."""
        if self.now in RESTARTS:
            return True
        at_s = self.restarted_at_s
        return self.episode is not None and at_s is not None and now_s - at_s < rules.restart_s

    def reported(self) -> Recovery | None:
        """Return the recovery to report; None while nothing was done or is due."""
        if self.episode is None or not (self.tries or self.next):
            return None
        return Recovery(
            failure_mode=self.episode.failure_mode,
            tries=tuple(self.tries),
            next=self.next,
            failed=self.failed_at_s is not None,
        )

    def find_saved_recovery(
        self, identity: DeviceId, rules: RecoveryRules, now_s: float
    ) -> SavedRecovery | None:
        """Return the state that the next process needs; None where nothing was done that limits it."""
        begun = self.now if self.now in RESTARTS else None
        restarted_at_s = self.restarted_at_s
        if restarted_at_s is not None and now_s - restarted_at_s >= rules.cooldown_s:
            restarted_at_s = None
        if not (self.tries or begun or self.failures or restarted_at_s is not None):
            return None
        return SavedRecovery(
            device_id=identity,
            serial=self.observation.serial,
            usb_path=self.usb_path,
            # The start of the current failure mode is observed again; saving it would rewrite the file often.
            episode=self.episode and replace(self.episode, since_s=0.0),
            tries=tuple(self.tries),
            begun=begun,
            step_started_at_s=self.step_running_since_s if begun else None,
            restarted_at_s=restarted_at_s,
            failures=self.failures,
            failed_at_s=self.failed_at_s,
        )


def restore_recovery(
    saved: SavedRecovery, rules: RecoveryRules, *, now_s: float, now: datetime
) -> RecoveringDevice:
    """Return the device in the next process: a restart that was begun counts as one, whatever its result."""
    recovering_device = RecoveringDevice(
        observation=TransportObservation(
            serial=saved.serial, presence=Presence.ABSENT, detail="adb does not list it yet"
        ),
        usb_path=saved.usb_path,
        episode=saved.episode and replace(saved.episode, since_s=now_s),
        tries=list(saved.tries),
        restarted_at_s=saved.restarted_at_s,
        failures=saved.failures,
        failed_at_s=saved.failed_at_s,
        restart_deadline_s=now_s + rules.absent_s,
    )
    if saved.begun is not None:
        at_s = now_s if saved.step_started_at_s is None else saved.step_started_at_s
        # It may have recovered before the step was begun.
        episode = recovering_device.episode or RecoveryEpisode(failure_mode=FailureMode.ABSENT, since_s=now_s)
        recovering_device.episode = record_step(episode, saved.begun, now_s=at_s)
        recovering_device.restarted_at_s = at_s
        recovering_device.tries.append(RecoveryAttempt(step=saved.begun, at=now, said=INTERRUPTED))
    return recovering_device


def saved_recoveries(
    recovering_devices: dict[DeviceId, RecoveringDevice], rules: RecoveryRules, now_s: float
) -> Iterator[SavedRecovery]:
    """Yield the state to save of all devices."""
    for identity, recovering_device in recovering_devices.items():
        if (saved := recovering_device.find_saved_recovery(identity, rules, now_s)) is not None:
            yield saved
