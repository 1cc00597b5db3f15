"""Leader election among farm processes: a lease that its holder renews."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLease:
    """A lease as stored in the database."""

    #: A farm process; unique to each start of it.
    holder: str
    expires_at: datetime


class LeaseDecision(StrEnum):
    """The holder of the lease after an attempt to acquire it."""

    #: This process held the lease, and renews it.
    RENEWED = "renewed"
    #: No process held it, or the lease had expired.
    ACQUIRED = "acquired"
    #: Another process holds it.
    ELSEWHERE = "elsewhere"


def decide_lease(
    current: LeaderLease | None, process: str, *, now: datetime, lease: timedelta
) -> LeaseDecision:
    """Decide whether a process may act as leader now.

    A lease that ends later than twice its length from now was written with a wrong clock, and is ignored.
    """
    if current is None:
        return LeaseDecision.ACQUIRED
    if now < current.expires_at <= now + 2 * lease:
        return LeaseDecision.RENEWED if current.holder == process else LeaseDecision.ELSEWHERE
    return LeaseDecision.ACQUIRED
