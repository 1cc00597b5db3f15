from datetime import UTC, datetime, timedelta

import pytest

from farm.core.base.microseconds import from_microseconds, to_microseconds


@pytest.mark.parametrize("since_1970", [0, 1, 1_764_000_000_123_456, 253_402_300_799_999_999])
def test_a_time_is_the_same_after_it_was_a_number(since_1970: int) -> None:
    assert to_microseconds(from_microseconds(since_1970)) == since_1970


def test_a_number_counts_microseconds_since_1970() -> None:
    assert from_microseconds(90_000_001) == datetime(1970, 1, 1, 0, 1, 30, 1, tzinfo=UTC)
    assert to_microseconds(datetime(1970, 1, 2, tzinfo=UTC)) == timedelta(days=1) // timedelta(microseconds=1)
