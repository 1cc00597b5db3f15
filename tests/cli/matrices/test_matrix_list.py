"""Listings are narrowed by time and name."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.errors import InvalidInput
from farm.presentation.text import is_listed, since_time

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "part", "is_shown"),
    [
        (None, None, True),
        (timedelta(1), None, True),
        (timedelta(-1), None, False),
        (None, "DEM", True),
        (None, "x", False),
    ],
)
def test_a_listing_shows_what_is_new_enough_and_named_so(
    since: timedelta | None, part: str | None, is_shown: bool
) -> None:
    begin = None if since is None else NOW - since
    assert is_listed(NOW, "demo", since=begin, name=part) is is_shown


def test_a_span_is_counted_back_from_now() -> None:
    begin = since_time("2h")
    assert begin is not None
    assert timedelta(hours=2) <= datetime.now(UTC) - begin < timedelta(hours=2, minutes=1)
    assert since_time(None) is None
    with pytest.raises(InvalidInput, match="not a duration"):
        since_time("yesterday")
