"""The statements that a database is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine


@contextmanager
def sent_to(target: Engine | Connection) -> Iterator[list[tuple[str, Any]]]:
    """The statements and their values that are sent while the block runs; many rows of one are one."""
    sent: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, sql: str, values: Any, _context: object, _many: bool) -> None:
        sent.append((sql, values))

    sa.event.listen(target, "before_cursor_execute", note)
    yield sent
    sa.event.remove(target, "before_cursor_execute", note)
