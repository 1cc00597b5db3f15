"""Events as people ask for them: of a phone by its name, of a person, of a kind, since a while."""

from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput
from farm.core.operations.event import EventSubject, event_kind_names
from farm.database.transaction import Tx
from farm.services.devices.views import device_id_named
from farm.store.devices.devices import device_labels
from farm.store.operations.event_log import EventFilter, events_after, newest_events
from farm.wire.documents.operations import EventPage, LoggedEvent

#: Things that are numbered; others have names.
_NUMBERED = (
    EventSubject.MATRIX,
    EventSubject.JOB,
    EventSubject.ATTEMPT,
    EventSubject.SESSION,
    EventSubject.INCIDENT,
    EventSubject.ALARM,
    EventSubject.PROGRAM,
    EventSubject.VARIANT,
)
_MAX_ID = 2**53
#: Python parses no number of thousands of digits.
_MAX_ID_DIGITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """A query for events, as the user wrote it."""

    #: `device:pixel-8`, `job:17`.
    subject: str | None = None
    #: `ann` is short for `user:ann`.
    actor: str | None = None
    kind: str | None = None
    since_s: int | None = None


def event_filter(tx: Tx, query: EventQuery) -> EventFilter:
    """Return the filter of a query.

    Raises:
        InvalidInput: there is no such kind of event or of thing, or several devices begin so.
        NotFound: there is no such device.
    """
    if query.kind is not None and query.kind not in event_kind_names():
        hint = f"{name_hint(query.kind, sorted(event_kind_names()))}; docs/events.md says what each means"
        raise InvalidInput(f"no event is called `{query.kind}`", hint=hint)
    return EventFilter(
        about=None if query.subject is None else _about(tx.connection, query.subject),
        actor=None if query.actor is None else _actor(query.actor),
        kind=query.kind,
        since=None if query.since_s is None else tx.now - timedelta(seconds=query.since_s),
    )


def last_page(connection: Connection, which: EventFilter, *, until: int, limit: int) -> EventPage:
    """Return the newest events."""
    return _page(connection, newest_events(connection, which, until=until, limit=limit), until)


def next_page(connection: Connection, which: EventFilter, *, after: int, until: int, limit: int) -> EventPage:
    """Return the events after one."""
    events = events_after(connection, which, after=after, until=until, limit=limit)
    # A full page ends before `until`: there may be more.
    return _page(connection, events, events[-1].event_id if len(events) == limit else max(after, until))


def _page(connection: Connection, events: list[LoggedEvent], next_after: int) -> EventPage:
    about = {DeviceId(event.subject_id) for event in events if event.subject == EventSubject.DEVICE}
    if labels := device_labels(connection, about):
        events = [
            replace(event, device_label=labels.get(DeviceId(event.subject_id)))
            if event.subject == EventSubject.DEVICE
            else event
            for event in events
        ]
    return EventPage(events=tuple(events), next=next_after)


def _about(connection: Connection, text: str) -> tuple[EventSubject, str]:
    name, _, subject_id = text.partition(":")
    if name not in set(EventSubject) or not subject_id:
        hint = f"write KIND:ID, like device:pixel-8 or job:17; kinds: {', '.join(EventSubject)}"
        raise InvalidInput(f"`{text}` names nothing that events are told of", hint=hint)
    subject = EventSubject(name)
    if subject is EventSubject.DEVICE:
        return subject, device_id_named(connection, subject_id)
    return subject, _number(subject, subject_id) if subject in _NUMBERED else subject_id


def _number(subject: EventSubject, text: str) -> str:
    if not (text.isdecimal() and len(text) < _MAX_ID_DIGITS and int(text) < _MAX_ID):
        raise InvalidInput(f"`{text}` is no {subject}'s number", hint=f"write {subject}:17")
    return str(int(text))


def _actor(text: str) -> str:
    """Return the name of an actor: `user:ann` for `ann`; the farm and unnamed users are one word."""
    return text if ":" in text or text in ("farm", "user") else f"user:{text}"
