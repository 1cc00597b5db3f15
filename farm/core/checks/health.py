"""When a phone stops being trusted."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from farm.core.errors import Blame

#: Failures blamed on the device, among its last five attempts, that make it suspect.
SUSPICIOUS_FAILURES = 3
#: A phone that began to start so often, over so long, and never came up, will not come up by itself.
BOOT_LOOP_CYCLES = 3
BOOT_LOOP_AFTER = timedelta(minutes=5)


def is_suspicious(recent: Sequence[Blame | None]) -> bool:
    """Judge by who was to blame in the last attempts; None stands for one that ended well."""
    return sum(1 for blame in recent if blame is Blame.DEVICE) >= SUSPICIOUS_FAILURES


def is_boot_loop(began_at: Sequence[datetime], *, now: datetime) -> bool:
    """Judge by when a phone began to start since it could last be used, oldest first."""
    return len(began_at) >= BOOT_LOOP_CYCLES and now - began_at[0] >= BOOT_LOOP_AFTER
