"""Compiled statements that all databases of a test process share.

An engine keeps what it compiles, and each test has an engine of its own: half of a short test's time would go
to the compilation of statements that the test before it compiled, too.
"""

from collections.abc import Hashable, Iterator, MutableMapping
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect, Engine
from sqlalchemy.sql.compiler import Compiled
from sqlalchemy.util import LRUCache

#: More than the farm's own statements on each kind of database; those that the tests build come and go.
_CAPACITY = 4_000

_Key = tuple[Dialect, *tuple[Hashable, ...]]


class CompiledStatements(MutableMapping[_Key, Compiled]):
    """A cache of compiled statements for engines that are set up alike.

    The keys of SQLAlchemy begin with the engine's dialect, and every engine has another; the rest says what
    is compiled. Statements for SQLite and for PostgreSQL are kept apart.
    """

    def __init__(self, capacity: int) -> None:
        """Keep so many statements, those that were used last."""
        self._statements: LRUCache[tuple[Hashable, ...], Compiled] = LRUCache(capacity)

    def __getitem__(self, key: _Key) -> Compiled:
        return self._statements[_shared(key)]

    def __setitem__(self, key: _Key, compiled: Compiled) -> None:
        self._statements[_shared(key)] = compiled

    def __delitem__(self, key: _Key) -> None:
        del self._statements[_shared(key)]

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


def _shared(key: _Key) -> tuple[Hashable, ...]:
    dialect, *rest = key
    return (dialect.name, *rest)


@cache
def share_compiled_statements() -> None:
    """Let every connection of this process use one cache."""
    statements = CompiledStatements(_CAPACITY)

    @sa.event.listens_for(Engine, "engine_connect")
    def share(connection: Connection) -> None:
        connection.execution_options(compiled_cache=statements)
