"""Events in words, one line each: when, who, what became of which thing, why."""

from datetime import date, datetime

from farm.wire.documents.events import LoggedEventView

_WHO_WIDTH = 14


class EventLines:
    """Lines in the reader's own time zone; the date stands where it is another one than a line before."""

    def __init__(self, today: date | None = None) -> None:
        """`today` is the date that needs no telling; by default the present one."""
        self._date = today or datetime.now().astimezone().date()

    def line(self, event: LoggedEventView) -> str:
        """`18:40:12  ann  device pixel-8 cordoned: active → cordoned (swollen battery)`."""
        return f"{self._when(event.at)}  {_actor_text(event.actor):{_WHO_WIDTH}}  {event_text(event)}"

    def _when(self, at: datetime) -> str:
        local = at.astimezone()
        if local.date() == self._date:
            return f"{local:%H:%M:%S}"
        self._date = local.date()
        return f"{local:%Y-%m-%d %H:%M:%S}"


def event_text(event: LoggedEventView) -> str:
    """What became of which thing, and why."""
    thing = f"{event.subject.replace('_', ' ')} {event.subject_id}"
    happened = event.kind.removeprefix(f"{event.subject}_").replace("_", " ")
    cause = f" ({event.cause})" if event.cause else ""
    return f"{thing} {happened}{_transition_text(event, happened)}{cause}"


def _transition_text(event: LoggedEventView, happened: str) -> str:
    """From where to where, unless the word for what happened says it already."""
    before, after = event.from_state, event.to_state
    if before is not None and after is not None:
        return f": {before} → {after}"
    return f": {after}" if after is not None and after != happened else ""


def _actor_text(actor: str) -> str:
    """People by their names; agents and the farm as what they are."""
    return actor.removeprefix("user:")
