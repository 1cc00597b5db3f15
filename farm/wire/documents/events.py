"""Documents about events."""

from datetime import datetime

from farm.wire.base import Count, Wire


class LoggedEventView(Wire):
    """One change: who made it, of what, from where to where, why."""

    event_id: Count
    at: datetime
    #: `user:ann`, `agent:HOST`, `farm`.
    actor: str
    #: docs/events.md lists them.
    kind: str
    subject: str
    subject_id: str
    from_state: str | None
    to_state: str | None
    cause: str | None


class EventPage(Wire):
    """GET /api/v1/events: oldest first."""

    events: tuple[LoggedEventView, ...]
    #: To be asked for with `after`, to go on without missing or doubling one.
    next: Count
