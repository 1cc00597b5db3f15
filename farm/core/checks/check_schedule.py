"""Check schedule of a device: soon while its health is open, later after each failure, daily while good."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from farm.core.checks.reference_run import COOLDOWN, REFERENCE_CODES
from farm.core.devices.device import Health
from farm.core.runs.measurement import Outcome

#: After a check that gave no answer; twice as long after each further one.
RECHECK_AFTER = timedelta(seconds=60)
RECHECK_AT_MOST = timedelta(hours=1)
#: A bad device that stays untouched; twice as long after each further check that fails.
BAD_RECHECK_AFTER = timedelta(hours=1)
BAD_RECHECK_AT_MOST = timedelta(hours=24)
#: A bad device that comes back is checked at once, so often: it may have been repaired.
MAX_CONCURRENT_ARRIVALS = 3
#: The number of a phone's last checks that decide.
CHECKS_CONSIDERED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRules:
    """Intervals between checks of good devices."""

    #: Once so long ago, a phone without work is checked.
    every: timedelta = timedelta(hours=24)
    #: After so many claims a phone is checked before its next job.
    after_jobs: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCheck:
    """One ended check of a phone."""

    outcome: Outcome
    #: The reason why it was not passed.
    code: str | None = None
    finished_at: datetime


def is_due(health: Health, past: Sequence[PastCheck], *, arrived: bool, now: datetime) -> bool:
    """Tell whether a device of the pool is to be checked now.

    `past` are its last checks, newest first. It `arrived` if it was not online before, or has just been put
    into the pool.
    """
    if health is Health.GOOD:
        return False
    if not past:
        return arrived or health is not Health.BAD
    return now - past[0].finished_at >= recheck_delay(health, past, arrived=arrived)


def recheck_delay(health: Health, past: Sequence[PastCheck], *, arrived: bool) -> timedelta:
    """Return how long after its last check a device waits for the next."""
    failed = len(list(takewhile(lambda check: check.outcome is not Outcome.SUCCEEDED, past)))
    if arrived:
        further = failed - MAX_CONCURRENT_ARRIVALS
        return timedelta(0) if further < 0 else _backoff(RECHECK_AFTER, further, RECHECK_AT_MOST)
    if health is Health.BAD:
        return _backoff(BAD_RECHECK_AFTER, max(0, failed - 1), BAD_RECHECK_AT_MOST)
    if past[0].code in REFERENCE_CODES:
        return COOLDOWN
    return _backoff(RECHECK_AFTER, max(0, failed - 1), RECHECK_AT_MOST)


def _backoff(first: timedelta, times: int, at_most: timedelta) -> timedelta:
    # Beyond that it is the longest anyhow, and a power of it no number for a clock.
    return min(at_most, first * (1 << min(times, CHECKS_CONSIDERED)))
