"""The active attempts of this process, with fences, clean-ups and notes by device."""

import asyncio
from dataclasses import dataclass, field

from agents.outbox.attempt_journal import JournalRecord, StartBlockers
from farm.core.base.ids import AttemptId, DeviceId, Digest
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import AttemptReport


@dataclass(slots=True, kw_only=True)
class ActiveAttempt:
    """One active attempt; removed when its device is clean *and* the farm knows its outcome."""

    record: JournalRecord
    task: asyncio.Task[None] | None = None
    #: The condition that its run waits for, as text.
    waiting_for: str | None = None
    #: The farm no longer wants it.
    stopping: bool = False
    cleaned: bool = False
    acknowledged: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to do for it."""
        return self.cleaned and self.acknowledged


@dataclass(slots=True, kw_only=True)
class ActiveAttempts:
    """All active attempts by id. Changed by the event loop's thread only."""

    attempt_by_id: dict[AttemptId, ActiveAttempt] = field(default_factory=dict)
    #: The highest fence that this process had, or that the device knows.
    fence_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: The device holds nothing of runs up to this fence.
    cleaned_fence_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: Reasons that devices repeatedly could not be cleaned, as text.
    unclean_by_device: dict[DeviceId, str] = field(default_factory=dict)
    #: The fence up to which the farm wants a device cleaned; its runs may have been another host's.
    fence_to_clean_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: The token that a device is to have in place of one that cannot be true.
    fence_to_reset_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: The state of controlled charging, as text.
    charging_by_device: dict[DeviceId, str] = field(default_factory=dict)
    #: Devices with a running device action.
    on_device_action: set[DeviceId] = field(default_factory=set)
    #: Set when the farm should be called at once.
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, record: JournalRecord) -> ActiveAttempt:
        """Add an attempt."""
        attempt = self.attempt_by_id[record.attempt_id] = ActiveAttempt(record=record)
        self.record_fence(record.device_id, record.fence)
        return attempt

    def record_fence(self, device_id: DeviceId, fence: int) -> None:
        """Record a fence: whatever the farm's database says, no fence up to it is valid for a new run."""
        self.fence_by_device[device_id] = max(fence, self.fence_by_device.get(device_id, 0))

    def record_cleaned(self, device_id: DeviceId, fence: int) -> None:
        """Record that a device holds nothing of runs up to `fence`."""
        self.unclean_by_device.pop(device_id, None)
        if fence > self.cleaned_fence_by_device.get(device_id, -1):
            self.cleaned_fence_by_device[device_id] = fence
            self.changed.set()

    def record_unclean(self, device_id: DeviceId, reason: str) -> None:
        """Record that a device cannot be cleaned and needs an operator."""
        if device_id not in self.unclean_by_device:
            self.changed.set()
        self.unclean_by_device[device_id] = reason

    def record_reset(self, device_id: DeviceId, fence: int) -> None:
        """Record that a device has this token, and holds nothing of any run."""
        self.fence_to_reset_by_device.pop(device_id, None)
        self.fence_by_device[device_id] = fence
        self.cleaned_fence_by_device.pop(device_id, None)

    def request_cleanup(self, device_id: DeviceId, fence: int, *, resets: bool = False) -> bool:
        """Record the fence to which the farm wants a device cleaned; return whether that is pending."""
        if resets and not self.is_busy(device_id):
            self.fence_to_reset_by_device[device_id] = fence
            return True
        if self.is_busy(device_id) or fence <= self.cleaned_fence_by_device.get(device_id, 0):
            return False
        self.fence_to_clean_by_device[device_id] = fence
        return True

    def holds(self, device_id: DeviceId) -> bool:
        """Return whether an attempt on the device is active, its clean-up included."""
        return any(attempt.record.device_id == device_id for attempt in self.attempt_by_id.values())

    def is_busy(self, device_id: DeviceId) -> bool:
        """Return whether nothing else may begin on the device."""
        return device_id in self.on_device_action or self.holds(device_id)

    def digests(self) -> set[Digest]:
        """Return the files that active attempts need on this host."""
        return {file.digest for attempt in self.attempt_by_id.values() for file in attempt.record.plan.files}

    def measuring(self) -> set[DeviceId]:
        """Return the devices that must not be disturbed."""
        records = (attempt.record for attempt in self.attempt_by_id.values())
        return {record.device_id for record in records if record.phase is AttemptState.MEASURING}

    def has_pending_news(self) -> bool:
        """Return whether there will be news of an attempt in a moment."""
        settled = (AttemptState.MEASURING, AttemptState.RETURNED)
        return any(attempt.record.phase not in settled for attempt in self.attempt_by_id.values())

    def reports(self) -> tuple[AttemptReport, ...]:
        """Return the attempts to report to the farm; not those it has given up already."""
        return tuple(
            AttemptReport(
                attempt_id=attempt.record.attempt_id,
                device_id=attempt.record.device_id,
                fence=attempt.record.fence,
                phase=attempt.record.phase,
                reason=attempt.record.reason,
                waiting_for=attempt.waiting_for if attempt.record.phase is AttemptState.PREPARING else None,
            )
            for attempt in self.attempt_by_id.values()
            if not attempt.stopping and not attempt.acknowledged
        )

    def start_blockers(self) -> StartBlockers:
        """Return what keeps assignments from being started."""
        active = (attempt.record.device_id for attempt in self.attempt_by_id.values())
        busy = frozenset((*active, *self.on_device_action))
        return StartBlockers(busy=busy, fence_by_device=dict(self.fence_by_device))
