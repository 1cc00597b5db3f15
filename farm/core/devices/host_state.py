"""The states of a host and of the sessions of its agent, as data."""

from enum import StrEnum

#: For a host that asks for what is another's.
CREDENTIAL_IN_USE_HINT = (
    "if no one restored a database or copied a folder, someone else uses this host's credential"
)


class HostState(StrEnum):
    """The operator's decision about a host."""

    ACTIVE = "active"
    #: Running work finishes; no new work starts.
    DRAINING = "draining"
    #: Its credential is not valid.
    RETIRED = "retired"


class HostEvent(StrEnum):
    """Operator decisions on a host."""

    #: Running work finishes, and no new work starts.
    DRAINED = "host_drained"
    #: It gets work again.
    ACTIVATED = "host_activated"
    #: Removed from the farm: its credential is no longer valid.
    RETIRED = "host_retired"
    #: Its machine joined again, with a new join token and credential.
    REJOINED = "host_rejoined"


class SessionState(StrEnum):
    """One life of an agent's process."""

    LIVE = "live"
    #: No call for a while; it keeps its running attempts.
    SILENT = "silent"
    #: No call for so long that its running attempts are lost.
    LOST = "lost"
    CLOSED = "closed"


class SessionEvent(StrEnum):
    """Session events."""

    #: The agent has not called for a while.
    SILENCED = "session_silent"
    #: It called again.
    RESUMED = "session_live"
    #: It was silent for too long: its running attempts are lost.
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
    # An operator's word is not enough: its credential may be in wrong hands.
    (_H.RETIRED, HostEvent.REJOINED): _H.ACTIVE,
}

#: An agent whose session is over opens another; no session comes back from an end.
SESSION_TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (_S.LIVE, SessionEvent.SILENCED): _S.SILENT,
    (_S.SILENT, SessionEvent.RESUMED): _S.LIVE,
    (_S.SILENT, SessionEvent.LOST): _S.LOST,
    **{(state, SessionEvent.CLOSED): _S.CLOSED for state in OPEN_SESSION},
}

#: State that each event leads to.
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

    #: Several of its devices disconnected or failed at once: a hub, a cable, an adb server.
    CORRELATED_FAILURES = "correlated_failures"
    #: Its agent reports that the host takes no new work.
    PRESSURE = "pressure"
    #: One of its USB controllers accepts no further device; connected ones keep working.
    USB_FULL = "usb_full"
    #: Its agent found files of its own damaged, and set them aside: a run's record or report is lost.
    FILES_DAMAGED = "files_damaged"
