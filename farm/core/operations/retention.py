"""Retention limits of the farm, and the order of eviction."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRules:
    """The storage limits; None: no limit."""

    #: All artifacts together.
    blobs_limit_bytes: int | None = None
    #: Of the raw output of finished matrices.
    evidence_keep_days: int | None = None
    #: All raw output together, as it lies in the database.
    evidence_limit_bytes: int | None = None
    #: Left free on the disk by uploads: a database that cannot grow stops the farm.
    reserve_bytes: int = 0
    #: Of removed artifacts, in the trash; None: until the disk is short of space.
    trash_keep_days: int | None = 7
    #: Of routine events, ended sessions, and plans whose raw output is gone.
    history_keep_days: int | None = None

    @property
    def evidence_keep(self) -> timedelta | None:
        """Return how long raw output is kept."""
        return None if self.evidence_keep_days is None else timedelta(days=self.evidence_keep_days)

    @property
    def history_keep(self) -> timedelta | None:
        """Return how long history is kept that nothing needs."""
        return None if self.history_keep_days is None else timedelta(days=self.history_keep_days)

    @property
    def trash_keep(self) -> timedelta | None:
        """Return how long removed artifacts stay in the trash."""
        return None if self.trash_keep_days is None else timedelta(days=self.trash_keep_days)


class Sized(Protocol):
    """A stored item that takes space."""

    @property
    def size_bytes(self) -> int: ...


SizedT = TypeVar("SizedT", bound=Sized)


def select_for_eviction(in_order: Iterable[SizedT], excess_bytes: int) -> list[SizedT]:
    """Return as many items from the front as must go to meet a limit; all where that is not enough."""
    going: list[SizedT] = []
    for item in in_order:
        if excess_bytes <= 0:
            break
        going.append(item)
        excess_bytes -= item.size_bytes
    return going
