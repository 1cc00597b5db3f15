"""The states of a host and of the sessions of its agent, as data."""

from enum import StrEnum


class HostState(StrEnum):
    """The operator's decision about a host."""

    ACTIVE = "active"
    #: What runs there ends; nothing new begins.
    DRAINING = "draining"
    #: Its credential opens nothing.
    RETIRED = "retired"


class HostEvent(StrEnum):
    """Operator decisions on a host."""

    #: What runs there ends, and nothing new begins.
    DRAINED = "host_drained"
    #: It gets work again.
    ACTIVATED = "host_activated"
    #: Out of the farm: its credential opens nothing any more.
    RETIRED = "host_retired"
    #: Its machine joined anew, with a token of an operator's and for another credential.
    REJOINED = "host_rejoined"


class SessionState(StrEnum):
    """One life of an agent's process."""

    LIVE = "live"
    #: Not heard of for a while; what it has in hand stays its own.
    SILENT = "silent"
    #: Not heard of for so long that what it had in hand is lost.
    LOST = "lost"
    CLOSED = "closed"


class SessionEvent(StrEnum):
    """Session events."""

    #: The agent has not called for a while.
    SILENCED = "session_silent"
    #: It called again.
    RESUMED = "session_live"
    #: It was silent for too long: what it had in hand is lost.
    LOST = "session_lost"
    #: A newer session of the host replaced it, or its host was retired.
    CLOSED = "session_closed"


#: The one session of a host that may call is in one of these.
OPEN_SESSION = (SessionState.LIVE, SessionState.SILENT)

_H, _S = HostState, SessionState

HOST_TRANSITIONS: dict[tuple[HostState, HostEvent], HostState] = {
    (_H.ACTIVE, HostEvent.DRAINED): _H.DRAINING,
    (_H.DRAINING, HostEvent.ACTIVATED): _H.ACTIVE,
    (_H.ACTIVE, HostEvent.RETIRED): _H.RETIRED,
    (_H.DRAINING, HostEvent.RETIRED): _H.RETIRED,
    # Not by a word of an operator's: its credential may be in wrong hands.
    (_H.RETIRED, HostEvent.REJOINED): _H.ACTIVE,
}

#: An agent whose session is over opens another; no session comes back from an end.
SESSION_TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (_S.LIVE, SessionEvent.SILENCED): _S.SILENT,
    (_S.SILENT, SessionEvent.RESUMED): _S.LIVE,
    (_S.SILENT, SessionEvent.LOST): _S.LOST,
    **{(state, SessionEvent.CLOSED): _S.CLOSED for state in OPEN_SESSION},
}

#: Where each event leads to.
TARGET_BY_HOST_EVENT: dict[HostEvent, HostState] = {event: to for (_, event), to in HOST_TRANSITIONS.items()}
EVENT_BY_SESSION_STATE: dict[SessionState, SessionEvent] = {
    to: event for (_, event), to in SESSION_TRANSITIONS.items()
}


def advance_host(state: HostState, event: HostEvent) -> HostState | None:
    """Return the state after an event; None when the event cannot happen there."""
    return HOST_TRANSITIONS.get((state, event))


def advance_session(state: SessionState, event: SessionEvent) -> SessionState | None:
    """Return the state after an event; None when the event cannot happen there."""
    return SESSION_TRANSITIONS.get((state, event))


class IncidentKind(StrEnum):
    """The kinds of incident on a host."""

    #: Several of its phones went away or failed at once: a hub, a cable, a server of adb.
    CORRELATED_FAILURES = "correlated_failures"
    #: Its agent says that the host takes no new work.
    PRESSURE = "pressure"
    #: A USB controller of its takes no further phone; those that are there go on.
    USB_FULL = "usb_full"
