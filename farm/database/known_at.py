"""Reading a database as it was known at a moment: measurements are superseded and never removed."""

from datetime import datetime

from sqlalchemy.engine import Connection

_OPTION = "farm_known_at"


def as_known_at(connection: Connection, at: datetime | None) -> Connection:
    """Have further queries of a connection answer as known at a moment, and return it; None: as now."""
    return connection.execution_options(**{_OPTION: at})


def known_at(connection: Connection) -> datetime | None:
    """Return the moment that a connection answers for; None for now."""
    at: datetime | None = connection.get_execution_options().get(_OPTION)
    return at
