"""Times as the database holds them, where there are too many of them to make a datetime of each."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(at: datetime) -> int:
    """Return a time in whole microseconds since 1970-01-01 UTC."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(since_1970: int) -> datetime:
    """Return the time of so many microseconds since 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=since_1970)
