"""Retry rules for jobs that ended without an answer, by the blame for the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from farm.core.base.ids import DeviceId
from farm.core.errors import Blame
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
#: What an attempt is lost by whose phone was carried away.
MOVED = "host.device_moved"
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
