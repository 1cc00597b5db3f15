"""Leader election among farm processes: a lease that its holder renews."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLease:
    """A lease as stored in the database."""

    #: A farm process; unique to each of its lives.
    holder: str
    expires_at: datetime


class LeaseDecision(StrEnum):
    """Whose turn it is."""

    #: This process held the duty, and goes on.
    KEPT = "kept"
    #: Nobody held it, or who did let it lapse.
    TAKEN = "taken"
    #: Another process holds it.
    ELSEWHERE = "elsewhere"


def decide_lease(
    found: LeaderLease | None, process: str, *, now: datetime, lease: timedelta
) -> LeaseDecision:
    """Decide whether a process may act as leader now.

    A lease that ends later than twice its length from now was written under a clock that was wrong: nobody
    waits for it.
    """
    if found is None:
        return LeaseDecision.TAKEN
    if now < found.expires_at <= now + 2 * lease:
        return LeaseDecision.KEPT if found.holder == process else LeaseDecision.ELSEWHERE
    return LeaseDecision.TAKEN
