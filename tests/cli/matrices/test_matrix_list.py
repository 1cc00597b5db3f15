"""Times that listings begin at."""

from datetime import UTC, datetime, timedelta

import pytest

from farm.core.errors import InvalidInput
from farm.presentation.text import past_moment


def test_a_duration_is_counted_back_from_now() -> None:
    begin = past_moment("2h", option="--since")
    assert begin is not None
    assert timedelta(hours=2) <= datetime.now(UTC) - begin < timedelta(hours=2, minutes=1)
    assert past_moment(None, option="--since") is None
    assert past_moment("2026-03-01", option="--since") == datetime(2026, 3, 1).astimezone()
    with pytest.raises(InvalidInput, match="neither a date nor a duration"):
        past_moment("yesterday", option="--since")
