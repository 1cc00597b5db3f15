"""Retry rules of jobs that ended without an answer, by the blame for it; poison jobs; deferred jobs."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from farm.core.base.ids import DeviceId
from farm.core.errors import AdbdRestarted, Blame, DeviceLost, DeviceRebooted
from farm.core.jobs.pending_reasons import PendingReason, StateOrigin
from farm.core.runs.measurement import Outcome


class RetryBudget(StrEnum):
    """The cause of a lost try; each has a budget of its own."""

    #: Caused by the user or the variant: a retry would end the same.
    OWN = "user or variant"
    #: The device disconnected, or failed.
    DEVICE = "device"
    #: The host was lost, or the device was moved away from it.
    HOST_LOST = "host lost"
    #: Other faults of hosts and of the farm.
    FAULT = "host or farm"


#: Tries that a job may lose to each cause and still be tried again.
RETRY_BUDGETS: dict[RetryBudget, int] = {
    RetryBudget.OWN: 0,
    RetryBudget.DEVICE: 2,
    RetryBudget.HOST_LOST: 3,
    RetryBudget.FAULT: 3,
}
#: Code of attempts whose phone was carried away.
MOVED = "host.device_moved"
#: Code of an attempt that its agent returned, and of a job that was returned too often.
JOB_DEFERRED = "job.deferred"
_HOST_LOST = frozenset({"host.lost", MOVED, "host.retired"})
MAX_ATTEMPTS = 6
#: Returns cost no attempt; this many mean that the device will never be ready for the job.
MAX_RETURNS = 20
#: Blocks of one device and round that are measured at most, the first included.
MAX_BLOCKS = 3
#: A cell with more measurements than this, none of them valid, is not repeated.
CHRONIC_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedAttempt:
    """One finished attempt of a job, as far as retries are concerned."""

    outcome: Outcome
    blame: Blame | None
    code: str | None = None
    device_id: DeviceId


def may_retry(tries: Sequence[FinishedAttempt]) -> bool:
    """Tell whether a job may be tried again after its latest attempt, the last of `tries`."""
    last = tries[-1]
    if last.outcome is not Outcome.INCONCLUSIVE or last.blame is None:
        return False
    if len(tries) >= MAX_ATTEMPTS:
        return False
    budget = budget_of(last.blame, last.code)
    lost = sum(1 for past in tries if past.blame and budget_of(past.blame, past.code) is budget)
    return lost <= RETRY_BUDGETS[budget]


def budget_of(blame: Blame, code: str | None) -> RetryBudget:
    """Return the budget that a failed try is counted against."""
    match blame:
        case Blame.USER | Blame.VARIANT:
            return RetryBudget.OWN
        case Blame.DEVICE:
            return RetryBudget.DEVICE
        case Blame.HOST:
            return RetryBudget.HOST_LOST if code in _HOST_LOST else RetryBudget.FAULT
        case Blame.FARM:
            return RetryBudget.FAULT
        case _:
            assert_never(blame)


#: Code of jobs whose work lost devices.
POISON_JOB = "job.poison"
#: Codes of attempts that lost their device.
DEVICE_GONE_CODES = frozenset({DeviceLost.code, DeviceRebooted.code, AdbdRestarted.code})
#: One device may disconnect independently; a second one lost to equal work is no accident.
MIN_DISTINCT_DEVICES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoss:
    """An attempt that ended through its phone."""

    device_id: DeviceId
    code: str | None


def poisoned_devices(losses: Iterable[DeviceLoss]) -> tuple[DeviceId, ...]:
    """Return the devices lost to equal work; empty while they may have failed on their own.

    Args:
        losses: of attempts at equal work: variant, program, backend and settings of one matrix.
    """
    lost = {loss.device_id for loss in losses if loss.code in DEVICE_GONE_CODES}
    return tuple(sorted(lost)) if len(lost) >= MIN_DISTINCT_DEVICES else ()


#: Between two claims of such a job: the first pause, doubled each time, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


def deferral_pause(return_count: int) -> timedelta:
    """Return how long after its last claim a deferred job is not claimed again.

    The agent's wait for the gates counts: after a wait that long, there is no pause.
    """
    doubled = max(0, return_count - 1)
    longest = LONGEST_PAUSE // FIRST_PAUSE
    return LONGEST_PAUSE if doubled >= longest.bit_length() else min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled)


def deferral_reason(
    until: datetime, return_count: int, *, origin: StateOrigin, subject: str = "it"
) -> PendingReason:
    """Return the pending reason of a deferred job, which `subject` names."""
    times = "once" if return_count == 1 else f"{return_count} times"
    return PendingReason(
        code="deferred",
        message=f"{subject} was deferred {times}, and may be tried again from {until:%H:%M:%S} UTC on",
        hint="wait: pauses get longer, up to 5 min; `gates:` of the matrix has the limits",
        passes=True,
        **asdict(origin),
    )
