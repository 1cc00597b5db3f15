"""Rule for when a device becomes suspect."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.errors import Blame
from farm.core.jobs.job import JobKind

#: Failures blamed on the device, among its last five attempts, that make it suspect.
SUSPICIOUS_FAILURES = 3
#: A device that began to boot so often, over so long, and never finished, is in a boot loop.
BOOT_LOOP_CYCLES = 3
BOOT_LOOP_AFTER = timedelta(minutes=5)
#: How many of a device's last attempts its health depends on.
RECENT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """An ended attempt on a device, as far as the health of the device is concerned."""

    attempt_id: AttemptId
    job_id: JobId
    kind: JobKind
    fence: int
    blame: Blame | None
    code: str | None
    #: What its job ended with; None while that is open, or where it ended well.
    job_code: str | None
    host_id: HostId
    claimed_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChange:
    """A change of a device's health, as its event tells it."""

    device_id: DeviceId
    at: datetime
    before: str | None


def is_suspicious(recent: Sequence[Blame | None]) -> bool:
    """Judge by who was to blame in the last attempts; None stands for one that ended well."""
    return sum(1 for blame in recent if blame is Blame.DEVICE) >= SUSPICIOUS_FAILURES


def is_boot_loop(began_at: Sequence[datetime], *, now: datetime) -> bool:
    """Judge by when a phone began to start since it could last be used, oldest first."""
    return len(began_at) >= BOOT_LOOP_CYCLES and now - began_at[0] >= BOOT_LOOP_AFTER
