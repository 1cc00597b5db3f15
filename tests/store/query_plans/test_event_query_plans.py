"""Looking into the event log costs what is shown, not what was ever logged."""

from datetime import timedelta

import pytest

from farm.core.operations.event import EventSubject
from farm.database.engine import Database
from farm.store.operations.event_log import EventFilter, events_after, newest_events
from farm.store.operations.event_watermark import event_watermark
from tests.store.query_plans.test_sqlite_query_plans import is_table_scan, plans
from tests.support.database.sample_rows import NOW, PHONE

ASKED: dict[str, tuple[EventFilter, str]] = {
    "everything": (EventFilter(), "INTEGER PRIMARY KEY"),
    "one phone": (EventFilter(about=(EventSubject.DEVICE, PHONE)), "ix_events_subject"),
    "one person": (EventFilter(actor="user:ann"), "ix_events_actor"),
    "one kind": (EventFilter(kind="device_reserved"), "ix_events_kind"),
}


@pytest.mark.parametrize("name", ASKED)
def test_events_are_found_by_an_index_that_has_their_order(sqlite_filled: Database, name: str) -> None:
    which, index = ASKED[name]
    found = [
        *plans(sqlite_filled, lambda c: newest_events(c, which, until=9, limit=5)),
        *plans(sqlite_filled, lambda c: events_after(c, which, after=3, until=9, limit=5)),
    ]
    for plan in found:
        assert any(index in step for step in plan), plan
        assert not [step for step in plan if is_table_scan(step) or "B-TREE" in step], plan


@pytest.mark.parametrize(
    "which",
    [
        EventFilter(since=NOW - timedelta(hours=2)),
        EventFilter(about=(EventSubject.JOB, "1")),
        EventFilter(about=(EventSubject.HOST, "bench-1")),
    ],
    ids=["since", "a job with its attempts", "a host with its sessions"],
)
def test_what_is_sorted_is_found_by_an_index_first(sqlite_filled: Database, which: EventFilter) -> None:
    for plan in plans(sqlite_filled, lambda c: newest_events(c, which, until=9, limit=5)):
        assert any("ix_events_" in step for step in plan), plan
        assert not [step for step in plan if is_table_scan(step)], plan


def test_the_last_number_is_found_without_a_look_at_the_rows(sqlite_filled: Database) -> None:
    (plan,) = plans(sqlite_filled, event_watermark)
    assert plan == ["SEARCH events"]
