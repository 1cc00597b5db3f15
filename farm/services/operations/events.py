"""Events as people ask for them: of a phone by its name, of a person, of a kind, since a while."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.core.operations.event import EventSubject, event_kind_names
from farm.services.devices.views import device_named
from farm.store.operations.event_log import EventFilter, LoggedEvent, events_after, newest_events
from farm.wire.documents.events import EventPage, LoggedEventView

#: Things that are numbered; others have names.
_NUMBERED = (
    EventSubject.MATRIX,
    EventSubject.JOB,
    EventSubject.ATTEMPT,
    EventSubject.SESSION,
    EventSubject.INCIDENT,
    EventSubject.ALARM,
    EventSubject.PROGRAM,
)
_MAX_ID = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Which events somebody wants, in their words."""

    #: `device:pixel-8`, `job:17`.
    subject: str | None = None
    #: `ann` is short for `user:ann`.
    actor: str | None = None
    kind: str | None = None
    since_s: int | None = None


def event_filter(connection: Connection, asked: EventQuery, *, now: datetime) -> EventFilter:
    """What those words mean here.

    Raises:
        InvalidInput: there is no such kind of event or of thing, or several devices begin so.
        NotFound: there is no such device.
    """
    if asked.kind is not None and asked.kind not in event_kind_names():
        raise InvalidInput(f"no event is called `{asked.kind}`", hint=_kind_hint(asked.kind))
    return EventFilter(
        about=None if asked.subject is None else _about(connection, asked.subject),
        actor=None if asked.actor is None else _actor(asked.actor),
        kind=asked.kind,
        since=None if asked.since_s is None else now - timedelta(seconds=asked.since_s),
    )


def last_page(connection: Connection, which: EventFilter, *, until: int, limit: int) -> EventPage:
    """The newest events."""
    return _page(newest_events(connection, which, until=until, limit=limit), until)


def next_page(connection: Connection, which: EventFilter, *, after: int, until: int, limit: int) -> EventPage:
    """What came after an event."""
    found = events_after(connection, which, after=after, until=until, limit=limit)
    # A full page ends before `until`: there may be more.
    return _page(found, found[-1].event_id if len(found) == limit else max(after, until))


def _page(found: list[LoggedEvent], next_after: int) -> EventPage:
    views = tuple(LoggedEventView.model_validate(event, from_attributes=True) for event in found)
    return EventPage(events=views, next=next_after)


def _about(connection: Connection, text: str) -> tuple[EventSubject, str]:
    name, _, subject_id = text.partition(":")
    if name not in set(EventSubject) or not subject_id:
        hint = f"write KIND:ID, like device:pixel-8 or job:17; kinds: {', '.join(EventSubject)}"
        raise InvalidInput(f"`{text}` names nothing that events are told of", hint=hint)
    subject = EventSubject(name)
    if subject is EventSubject.DEVICE:
        return subject, device_named(connection, subject_id).device_id
    return subject, _number(subject, subject_id) if subject in _NUMBERED else subject_id


def _number(subject: EventSubject, text: str) -> str:
    if not (text.isdecimal() and int(text) < _MAX_ID):
        raise InvalidInput(f"`{text}` is no {subject}'s number", hint=f"write {subject}:17")
    return str(int(text))


def _actor(text: str) -> str:
    """`ann` is a person; the farm itself, and the person of old who was nobody, are called by one word."""
    return text if ":" in text or text in ("farm", "user") else f"user:{text}"


def _kind_hint(text: str) -> str:
    return f"{name_hint(text, sorted(event_kind_names()))}; docs/events.md says what each means"
