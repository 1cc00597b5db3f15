"""Events as text, one line each: time, actor, change, cause."""

from datetime import date, datetime

from farm.wire.documents.events import LoggedEventView

_WHO_WIDTH = 14


class EventLines:
    """Formats events in the local time zone, with the date where it differs from the previous line."""

    def __init__(self, today: date | None = None) -> None:
        """`today` is the date that is not printed; default: the current date."""
        self._date = today or datetime.now().astimezone().date()

    def line(self, event: LoggedEventView) -> str:
        """Return `18:40:12  ann  device pixel-8 cordoned: active → cordoned (swollen battery)`."""
        return f"{self._when(event.at)}  {_actor_text(event.actor):{_WHO_WIDTH}}  {event_text(event)}"

    def _when(self, at: datetime) -> str:
        local = at.astimezone()
        if local.date() == self._date:
            return f"{local:%H:%M:%S}"
        self._date = local.date()
        return f"{local:%Y-%m-%d %H:%M:%S}"


def event_text(event: LoggedEventView) -> str:
    """Return the subject, its change and the cause."""
    subject = f"{event.subject.replace('_', ' ')} {event.subject_id}"
    change = event.kind.removeprefix(f"{event.subject}_").replace("_", " ")
    cause = f" ({event.cause})" if event.cause else ""
    return f"{subject} {change}{_transition_text(event, change)}{cause}"


def _transition_text(event: LoggedEventView, change: str) -> str:
    """Return the states before and after, unless the kind of the event names them already."""
    before, after = event.from_state, event.to_state
    if before is not None and after is not None:
        return f": {before} → {after}"
    return f": {after}" if after is not None and after != change else ""


def _actor_text(actor: str) -> str:
    """Return the name of a person, and other actors as they are."""
    return actor.removeprefix("user:")
