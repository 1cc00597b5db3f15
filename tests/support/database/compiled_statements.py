"""Compiled statements that all SQLite databases of a test process share.

An engine keeps what it compiles, and each test has an engine of its own: half of a short test's time would go
to the compilation of statements that the test before it compiled, too.
"""

from collections.abc import Hashable, Iterator, MutableMapping
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql.compiler import Compiled
from sqlalchemy.util import LRUCache

#: More than the farm's own statements; those that the tests build come and go.
_CAPACITY = 2_000


class CompiledStatements(MutableMapping[tuple[Hashable, ...], Compiled]):
    """A cache of compiled statements for engines that are set up alike.

    The keys of SQLAlchemy begin with the engine's dialect, and every engine has another; the rest says what
    is compiled.
    """

    def __init__(self, capacity: int) -> None:
        """Keep so many statements, those that were used last."""
        self._statements: LRUCache[tuple[Hashable, ...], Compiled] = LRUCache(capacity)

    def __getitem__(self, key: tuple[Hashable, ...]) -> Compiled:
        return self._statements[key[1:]]

    def __setitem__(self, key: tuple[Hashable, ...], compiled: Compiled) -> None:
        self._statements[key[1:]] = compiled

    def __delitem__(self, key: tuple[Hashable, ...]) -> None:
        del self._statements[key[1:]]

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


@cache
def share_compiled_statements() -> None:
    """Let every connection to SQLite in this process use one cache."""
    statements = CompiledStatements(_CAPACITY)

    @sa.event.listens_for(Engine, "engine_connect")
    def share(connection: Connection) -> None:
        if connection.dialect.name == "sqlite":
            connection.execution_options(compiled_cache=statements)
