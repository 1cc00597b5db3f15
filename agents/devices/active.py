"""The attempts in hand, and what this process knows of fences and of cleaned phones."""

import asyncio
from dataclasses import dataclass, field

from agents.outbox.journal import JournalRecord, StartBlockers
from farm.core.base.ids import AttemptId, DeviceId, Digest
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import AttemptReport


@dataclass(slots=True, kw_only=True)
class ActiveAttempt:
    """One attempt in hand; let go when its phone is clean *and* the farm knows how it ended."""

    record: JournalRecord
    task: asyncio.Task[None] | None = None
    #: What keeps its run from beginning, in words.
    waiting_for: str | None = None
    #: The farm does not want it any more.
    stopping: bool = False
    cleaned: bool = False
    acknowledged: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do for it."""
        return self.cleaned and self.acknowledged


@dataclass(slots=True, kw_only=True)
class ActiveAttempts:
    """All attempts in hand by id. Changed by the event loop's thread only."""

    attempt_by_id: dict[AttemptId, ActiveAttempt] = field(default_factory=dict)
    #: The highest fence that this process had in hand, or that the phone knows.
    fence_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: Everything of runs up to this fence is gone from the phone.
    cleaned_fence_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: Why phones that were tried again and again are not clean, in words.
    unclean_by_device: dict[DeviceId, str] = field(default_factory=dict)
    #: The farm wants these cleaned up to there: their runs may have been another host's.
    fence_to_clean_by_device: dict[DeviceId, int] = field(default_factory=dict)
    #: What is so of the charging of phones whose batteries are looked after, in words.
    charging_by_device: dict[DeviceId, str] = field(default_factory=dict)
    #: Phones on which an operator's errand is being done.
    on_device_action: set[DeviceId] = field(default_factory=set)
    #: Set when the farm should hear of something at once.
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, record: JournalRecord) -> ActiveAttempt:
        """Hold one more attempt."""
        attempt = ActiveAttempt(record=record)
        self.attempt_by_id[record.attempt_id] = attempt
        self.record_fence(record.device_id, record.fence)
        return attempt

    def record_fence(self, device_id: DeviceId, fence: int) -> None:
        """A fence was given: whatever the farm's database says, none up to it is good for a new run."""
        known = self.fence_by_device.get(device_id, 0)
        self.fence_by_device[device_id] = max(fence, known)

    def record_cleaned(self, device_id: DeviceId, fence: int) -> None:
        """A phone holds nothing of runs up to `fence` any more."""
        self.unclean_by_device.pop(device_id, None)
        if fence > self.cleaned_fence_by_device.get(device_id, -1):
            self.cleaned_fence_by_device[device_id] = fence
            self.changed.set()

    def record_unclean(self, device_id: DeviceId, reason: str) -> None:
        """A phone cannot be cleaned, and somebody should see to it."""
        if device_id not in self.unclean_by_device:
            self.changed.set()
        self.unclean_by_device[device_id] = reason

    def request_cleanup(self, device_id: DeviceId, fence: int) -> bool:
        """Note up to where the farm wants a phone cleaned; whether somebody has yet to begin with that."""
        if self.is_busy(device_id) or fence <= self.cleaned_fence_by_device.get(device_id, 0):
            return False
        self.fence_to_clean_by_device[device_id] = fence
        return True

    def holds(self, device_id: DeviceId) -> bool:
        """Whether an attempt on the phone is in hand, its clean-up included."""
        return any(attempt.record.device_id == device_id for attempt in self.attempt_by_id.values())

    def is_busy(self, device_id: DeviceId) -> bool:
        """Whether nothing else may be begun on the phone."""
        return device_id in self.on_device_action or self.holds(device_id)

    def digests(self) -> set[Digest]:
        """The files that attempts in hand need on this host, or may need once more."""
        return {file.digest for attempt in self.attempt_by_id.values() for file in attempt.record.plan.files}

    def measuring(self) -> set[DeviceId]:
        """The phones that must be left in peace."""
        return {
            attempt.record.device_id
            for attempt in self.attempt_by_id.values()
            if attempt.record.phase is AttemptState.MEASURING
        }

    def has_pending_news(self) -> bool:
        """Whether there will be something new to say of an attempt in a moment."""
        settled = (AttemptState.MEASURING, AttemptState.RETURNED)
        return any(attempt.record.phase not in settled for attempt in self.attempt_by_id.values())

    def reports(self) -> tuple[AttemptReport, ...]:
        """What the farm is told of attempts; not those it has given up already."""
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
        """What keeps assignments from being started."""
        return StartBlockers(
            busy=frozenset(attempt.record.device_id for attempt in self.attempt_by_id.values())
            | self.on_device_action,
            fence_by_device=dict(self.fence_by_device),
        )
