"""Listings are narrowed by time and name."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.errors import InvalidInput
from farm.presentation.text import is_listed, past_moment

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


def test_a_duration_is_counted_back_from_now() -> None:
    begin = past_moment("2h", option="--since")
    assert begin is not None
    assert timedelta(hours=2) <= datetime.now(UTC) - begin < timedelta(hours=2, minutes=1)
    assert past_moment(None, option="--since") is None
    assert past_moment("2026-03-01", option="--since") == datetime(2026, 3, 1).astimezone()
    with pytest.raises(InvalidInput, match="neither a date nor a duration"):
        past_moment("yesterday", option="--since")
