"""Times of queries: with a zone, and in the past."""

from datetime import datetime

from farm.core.errors import InvalidInput


def past_time(name: str, at: datetime | None, *, now: datetime) -> datetime | None:
    """Return the time of a query parameter; None without one.

    Raises:
        InvalidInput: it has no zone, or lies in the future.
    """
    if at is None:
        return None
    if at.tzinfo is None:
        raise InvalidInput(f"{name}: a time without a zone", hint="write it like 2026-03-01T00:00:00Z")
    if at > now:
        raise InvalidInput(f"{name}: {at.isoformat()} lies in the future", hint="give a time that has passed")
    if at.year < 1970:
        raise InvalidInput(f"{name}: {at.isoformat()} lies before 1970", hint="give a later time")
    return at
