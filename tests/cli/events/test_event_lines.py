"""Events as a person reads them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from farm.cli.events.events import EventLines, event_text
from farm.wire.documents.operations import LoggedEvent

NOON = datetime(2026, 3, 1, 12, 0).astimezone()


def event(**changes: Any) -> LoggedEvent:
    cordoned = LoggedEvent(
        event_id=7,
        at=NOON,
        actor="user:ann",
        kind="device_cordoned",
        subject="device",
        subject_id="pixel-8",
        from_state="active",
        to_state="cordoned",
        cause="swollen battery",
    )
    return replace(cordoned, **changes)


def test_a_line_says_when_who_what_of_which_from_where_to_where_and_why() -> None:
    line = EventLines(NOON.date()).line(event())
    assert line == "12:00:00  ann             device pixel-8 cordoned: active → cordoned (swollen battery)"


def test_a_device_is_named_by_its_label() -> None:
    assert event_text(event(device_label="bench-a")).startswith("device bench-a cordoned")


def test_the_date_stands_where_it_changes_and_nowhere_else() -> None:
    lines = EventLines(NOON.date())
    days = [NOON - timedelta(days=1), NOON - timedelta(days=1), NOON, NOON]
    said = [lines.line(event(at=at)).split("  ")[0] for at in days]
    assert said == ["2026-02-28 12:00:00", "12:00:00", "2026-03-01 12:00:00", "12:00:00"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"kind": "job_queued", "subject": "job", "from_state": None, "to_state": "queued"},
            "job pixel-8 queued",
        ),
        (
            {"kind": "device_found", "from_state": None, "to_state": "pending"},
            "device pixel-8 found: pending",
        ),
        (
            {"kind": "device_action_requested", "from_state": None, "to_state": None},
            "device pixel-8 action requested",
        ),
        (
            {"kind": "join_token_created", "subject": "join_token", "from_state": None, "to_state": "open"},
            "join token pixel-8 created: open",
        ),
    ],
)
def test_a_beginning_says_where_it_leads_unless_its_word_does(changes: dict[str, object], words: str) -> None:
    assert event_text(event(cause=None, **changes)) == words
