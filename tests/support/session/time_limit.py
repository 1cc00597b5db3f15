"""The time limit of a run: long tests that would begin after it are skipped, and counted as such."""

import os
import time
from collections.abc import Callable

import pytest

#: Until when long tests begin, in seconds since the epoch as `date +%s` prints them. CI sets it.
UNTIL = "BENCHFARM_LONG_TESTS_UNTIL"
#: The marks of what `make test-long` runs.
_LONG = ("long", "hypothesis")


class TimeLimit:
    """Lets a run on a slow machine end in time. The quick tests are run in any case."""

    def __init__(self, *, now_s: Callable[[], float] = time.time) -> None:
        self.now_s = now_s

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a long test that would begin too late, before its fixtures are made."""
        until_s = os.environ.get(UNTIL)
        if until_s and self.now_s() > float(until_s) and any(map(item.get_closest_marker, _LONG)):
            pytest.skip(f"it would begin after {UNTIL}")
