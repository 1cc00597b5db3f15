"""Whether a job that ended without an answer is tried again: budgets by blame."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.errors import Blame
from farm.core.ids import DeviceId
from farm.core.measurement import Outcome

#: Tries a job may lose to each party, and in all, before it is finished as it stands.
BUDGET_BY_BLAME: dict[Blame, int] = {
    Blame.USER: 0,
    Blame.VARIANT: 0,
    Blame.DEVICE: 2,
    Blame.HOST: 3,
    Blame.FARM: 3,
}
MAX_ATTEMPTS = 6
#: Give-backs cost no attempt; this many say that the phone will never be ready for the job.
MAX_GIVE_BACKS = 20
#: Blocks of one device and round that are measured at most, the first included.
MAX_BLOCKS = 3
#: A cell with more measurements than this and not a valid one among them will not be cured by more of them.
CHRONIC_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTry:
    """One finished attempt of a job, as far as retries are concerned."""

    outcome: Outcome
    blame: Blame | None
    device_id: DeviceId


def may_retry(tries: Sequence[PastTry]) -> bool:
    """Tell whether a job may be tried again after its latest attempt, the last of `tries`."""
    last = tries[-1]
    if last.outcome is not Outcome.INCONCLUSIVE or last.blame is None:
        return False
    if len(tries) >= MAX_ATTEMPTS:
        return False
    lost_to_blame = sum(1 for past in tries if past.blame is last.blame)
    return lost_to_blame <= BUDGET_BY_BLAME[last.blame]
