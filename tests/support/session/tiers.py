"""The two tiers: `long` tests are marked where they stand; those that need a PostgreSQL are marked here."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

#: The fixture whose use starts a PostgreSQL.
_SERVER = "postgres"


def quick_first(values: Sequence[Any], quick: int = 1) -> list[Any]:
    """Return the values of one parameter, or tuples of several, whose tests are long but for the first."""
    several = [value if isinstance(value, tuple) else (value,) for value in values[quick:]]
    return [*values[:quick], *(pytest.param(*value, marks=pytest.mark.long) for value in several)]


class Tiers:
    """Keeps SQLite in the quick tier of what is tried on each database, and a named few of both."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Iterable[pytest.Item]) -> None:
        """Mark what needs a PostgreSQL as long, unless `on_postgresql` keeps it in the quick tier."""
        for item in items:
            if needs_postgresql(item) and item.get_closest_marker("on_postgresql") is None:
                item.add_marker("long")


def needs_postgresql(item: pytest.Item) -> bool:
    """Return whether a test uses the server, or is the PostgreSQL case of one for each database."""
    if _SERVER in getattr(item, "fixturenames", ()):
        return True
    case = getattr(item, "callspec", None)
    return case is not None and "postgresql" in case.params.values()
