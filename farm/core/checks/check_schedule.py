"""When a phone is checked again: soon while its health is open, later once it fails, daily while good."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from farm.core.checks.reference_run import COOL_AFTER, GOLDEN_CODES
from farm.core.devices.device import Health
from farm.core.runs.measurement import Outcome

#: After a check that gave no answer; twice as long after each further one.
AGAIN_AFTER = timedelta(seconds=60)
AGAIN_AT_MOST = timedelta(hours=1)
#: A bad phone that nobody touches; twice as long after each further check that fails.
BAD_AGAIN_AFTER = timedelta(hours=1)
BAD_AT_MOST = timedelta(hours=24)
#: A bad phone that comes back is checked at once, so often: somebody may have seen to it.
ARRIVALS_AT_ONCE = 3
#: How many of a phone's last checks decide.
LAST_CHECKS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRules:
    """How often good phones are checked."""

    #: Once so long ago, a phone without work is checked.
    every: timedelta = timedelta(hours=24)
    #: After so many claims a phone is checked before its next job.
    after_jobs: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCheck:
    """One ended check of a phone."""

    outcome: Outcome
    #: Why it was not passed.
    code: str | None = None
    finished_at: datetime


def is_due(health: Health, past: Sequence[PastCheck], *, arrived: bool, now: datetime) -> bool:
    """Whether a phone of the pool whose health only a check can tell is to be checked now.

    Args:
        health: what is known.
        past: its last checks, newest first.
        arrived: it was not online before, or somebody has just put it into the pool.
        now: the time.
    """
    if health is Health.GOOD:
        return False
    if not past:
        return arrived or health is not Health.BAD
    return now - past[0].finished_at >= wait_after(health, past, arrived=arrived)


def wait_after(health: Health, past: Sequence[PastCheck], *, arrived: bool) -> timedelta:
    """How long after its last check a phone waits for the next."""
    failed = len(list(takewhile(lambda check: check.outcome is not Outcome.SUCCEEDED, past)))
    if arrived:
        further = failed - ARRIVALS_AT_ONCE
        return timedelta(0) if further < 0 else _doubled(AGAIN_AFTER, further, AGAIN_AT_MOST)
    if health is Health.BAD:
        return _doubled(BAD_AGAIN_AFTER, max(0, failed - 1), BAD_AT_MOST)
    if past[0].code in GOLDEN_CODES:
        return COOL_AFTER
    return _doubled(AGAIN_AFTER, max(0, failed - 1), AGAIN_AT_MOST)


def _doubled(first: timedelta, times: int, at_most: timedelta) -> timedelta:
    # Beyond that it is the longest anyhow, and a power of it no number for a clock.
    return min(at_most, first * (1 << min(times, LAST_CHECKS)))
