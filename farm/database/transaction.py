"""The transaction that a service works in: its connection, its moment and who acts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import Connection

P = ParamSpec("P")
T = TypeVar("T")
#: A service as `Database.write` and its kin run it.
BoundService = Callable[Concatenate[Connection, P], T]


@dataclass(frozen=True, slots=True)
class Tx:
    """An open transaction, the moment that its changes are dated with, and the actor that its events name.

    Functions that only read take a `Connection`; those that change rows or compare with the moment take this.
    """

    connection: Connection
    now: datetime
    actor: str = "farm"

    def at(self, now: datetime) -> "Tx":
        """Return the same transaction at another moment."""
        return replace(self, now=now)

    def by(self, actor: str) -> "Tx":
        """Return the same transaction on behalf of another actor."""
        return replace(self, actor=actor)


def bind_tx(
    service: Callable[Concatenate[Tx, P], T], *, now: datetime, actor: str = "farm"
) -> BoundService[P, T]:
    """Return the service as a function of a connection."""

    def bound(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return service(Tx(connection, now, actor), *args, **kwargs)

    return bound
