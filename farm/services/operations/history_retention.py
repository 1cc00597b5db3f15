"""Retention of history: old events, sessions and plans go in small transactions, with an event for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol, assert_never

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.operations.event import EventSubject, FarmEvent
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.store.operations import history_retention
from farm.store.operations.events import record_event
from farm.store.operations.history_retention import HistoryPage

#: Rows of one page, and so the most that it deletes: agents wait for it no longer than for
#: one of their own.
PAGE_ROWS = 1000
#: Kept rows are passed over again after so long: by then, something of them may have become free to go.
_WALK_AGAIN_AFTER = timedelta(days=1)


class HistoryKind(StrEnum):
    """The parts of history, as events name them."""

    EVENTS = "events"
    SESSIONS = "sessions"
    PLANS = "plans"


class _FindPage(Protocol):
    def __call__(
        self, connection: Connection, *, after: int, before: datetime, limit: int
    ) -> HistoryPage: ...


_FIND: dict[HistoryKind, _FindPage] = {
    HistoryKind.EVENTS: history_retention.find_old_events,
    HistoryKind.SESSIONS: history_retention.find_old_sessions,
    HistoryKind.PLANS: history_retention.find_old_plans,
}


@dataclass(slots=True)
class HistoryWalk:
    """Walks over the history, each from where the last one ended; once a day from the beginning.

    Where it is stands in memory only: a farm that is restarted begins at the oldest row, and passes over what
    is kept without a lock.
    """

    _after: dict[HistoryKind, int] = field(default_factory=dict)
    _began_at: datetime | None = None

    def __call__(self, database: Database, clock: Clock, keep: timedelta) -> dict[HistoryKind, int]:
        """Remove what is older than `keep` and not needed; return how many of each. Blocks."""
        now = clock.now()
        if self._began_at is None or not timedelta(0) <= now - self._began_at < _WALK_AGAIN_AFTER:
            self._after.clear()
            self._began_at = now
        return {kind: self._remove(kind, database, clock, keep) for kind in HistoryKind}

    def _remove(self, kind: HistoryKind, database: Database, clock: Clock, keep: timedelta) -> int:
        count = 0
        for last_id, page in _pages(
            kind, database, before=clock.now() - keep, after=self._after.get(kind, 0)
        ):
            if page.removable:
                service = bind_tx(remove_page, now=clock.now())
                count += database.write(service, kind, page, keep_days=keep.days)
            self._after[kind] = last_id
        return count


def count_old_history(database: Database, clock: Clock, keep: timedelta) -> dict[HistoryKind, int]:
    """Return how much history is older than `keep` and not needed. Blocks; removes nothing.

    Raw output that the next sweep removes may free more.
    """
    before = clock.now() - keep
    return {
        kind: sum(len(page.removable) for _, page in _pages(kind, database, before=before, after=0))
        for kind in HistoryKind
    }


def _pages(
    kind: HistoryKind, database: Database, *, before: datetime, after: int
) -> Iterator[tuple[int, HistoryPage]]:
    """Yield the pages of old rows, each read by a transaction of its own, with the last id of each."""
    find = partial(_FIND[kind], before=before, limit=PAGE_ROWS)
    while (page := database.read(find, after=after)).last_id is not None:
        after = page.last_id
        yield after, page


def remove_page(tx: Tx, kind: HistoryKind, page: HistoryPage, *, keep_days: int) -> int:
    """Delete what may go of one page, and record how much; what is gone already is not counted."""
    count = _remove_rows(tx.connection, kind, page.removable)
    if count:
        since = "" if page.oldest is None else f", the oldest from {page.oldest:%Y-%m-%d}"
        record_event(
            tx.by("farm"),
            FarmEvent.HISTORY_EXPIRED,
            kind,
            subject=EventSubject.STORAGE,
            from_state="kept",
            to_state="expired",
            cause=f"{count} {kind}{since}, by the rule of {keep_days} days",
        )
    return count


def _remove_rows(connection: Connection, kind: HistoryKind, ids: Sequence[int]) -> int:
    match kind:
        case HistoryKind.EVENTS:
            return history_retention.remove_events(connection, ids)
        case HistoryKind.SESSIONS:
            return history_retention.remove_sessions(connection, ids)
        case HistoryKind.PLANS:
            return history_retention.remove_plans(connection, ids)
        case _:
            assert_never(kind)
