"""When a phone stops being trusted."""

from collections.abc import Sequence

from farm.core.errors import Blame

#: Failures blamed on the device, among its last five attempts, that make it suspect.
SUSPICIOUS_FAILURES = 3


def is_suspicious(recent: Sequence[Blame | None]) -> bool:
    """Judge by who was to blame in the last attempts; None stands for one that ended well."""
    return sum(1 for blame in recent if blame is Blame.DEVICE) >= SUSPICIOUS_FAILURES
