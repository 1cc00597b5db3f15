"""Reasons why a job is pending, those that need a person first, each with a remedy."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from shlex import quote
from typing import assert_never

from farm.core.devices.device import Blocker, Presence
from farm.core.devices.host_state import IncidentKind, SessionState
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER, advice, presence_advice, sort_for_display
from farm.core.jobs.attempt import AttemptState

#: Blockers that pass automatically; all others may last for ever.
TEMPORARY = frozenset(
    {
        Blocker.BUSY,
        Blocker.DEVICE_ACTION,
        Blocker.NOT_CLEANED,
        Blocker.CPU_SHARED,
        Blocker.HOST_FULL,
        Blocker.HEALTH_UNKNOWN,
        Blocker.HEALTH_SUSPECT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOrigin:
    """The time, actor and cause of a state; None where not recorded."""

    since: datetime | None = None
    by: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReason:
    """One thing that a job waits for."""

    #: For programs: `cordoned`, `not_cleaned`, `gates_shut`.
    code: str
    message: str
    #: The remedy, or that waiting is enough.
    hint: str
    #: It passes automatically.
    passes: bool
    #: Since when, by whom and why, as far as that is recorded.
    since: datetime | None
    by: str | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """The device of a reason, as commands and people name it."""

    name: str
    host: str
    presence: Presence


def actionable_first(blockers: Sequence[Blocker]) -> list[Blocker]:
    """Sort blockers: those that need a person before those that pass automatically."""
    return sorted(sort_for_display(blockers), key=lambda blocker: blocker in TEMPORARY)


def blocker_reason(blocker: Blocker, place: DeviceRef, origin: StateOrigin) -> PendingReason:
    """Return a device's blocker as a reason of a job that waits for the device."""
    remedy = advice(blocker, place.presence, name=place.name, host=place.host)
    return PendingReason(
        code=blocker,
        message=_message(blocker, place),
        hint=remedy or _wait_hint(blocker, place),
        passes=blocker in TEMPORARY or (blocker is Blocker.NOT_ONLINE and remedy is None),
        **asdict(origin),
    )


def _message(blocker: Blocker, place: DeviceRef) -> str:
    if blocker is Blocker.NOT_ONLINE and place.presence is not Presence.ONLINE:
        return f"{MESSAGE_BY_BLOCKER[blocker]} ({place.presence})"
    return MESSAGE_BY_BLOCKER[blocker]


def _wait_hint(blocker: Blocker, place: DeviceRef) -> str:
    """Return why waiting is enough, and where to check when it takes long."""
    show = f"`farm device show {quote(place.name)}`"
    match blocker:
        case Blocker.BUSY:
            return f"wait for the run that is under way: {show} has it"
        case Blocker.DEVICE_ACTION:
            return f"wait until it is done, 10 min at most: {show} has it"
        case Blocker.NOT_CLEANED:
            return f"wait: its agent cleans it up; if that lasts, the agent's log on {place.host} says why"
        case Blocker.CPU_SHARED:
            return "wait: devices that share a CPU take turns"
        case Blocker.HOST_FULL:
            return f"wait: a run on {place.host} has to end first"
        case Blocker.HEALTH_UNKNOWN | Blocker.HEALTH_SUSPECT:
            return f"wait: its check goes before all other jobs; {show} has its outcome"
        case Blocker.NOT_ONLINE:
            return "wait: Android is starting"
        case (
            Blocker.SESSION_NOT_LIVE
            | Blocker.HOST_DRAINING
            | Blocker.PENDING
            | Blocker.CORDONED
            | Blocker.RESERVED
            | Blocker.RETIRED
            | Blocker.HEALTH_BAD
        ):
            return show
        case _:
            assert_never(blocker)


def incident_reason(kind: IncidentKind, host: str, origin: StateOrigin) -> PendingReason:
    """Return a host's incident as a reason of a job for one of its devices."""
    match kind:
        case IncidentKind.PRESSURE:
            message = "the host takes no new work"
            hint = f"fix it on {host}: its agent continues automatically afterwards"
        case IncidentKind.CORRELATED_FAILURES:
            message = "several devices of the host failed together, this one among them"
            hint = f"check hub, cables and adb server of {host}"
        case IncidentKind.USB_FULL:
            message = "a USB controller of the host takes no further device"
            hint = f"plug devices in at another controller of {host}"
        case IncidentKind.FILES_DAMAGED:
            message = "files of the host's agent were damaged"
            hint = f"check the disk of {host}, then delete the files that the incident names"
        case _:
            assert_never(kind)
    return PendingReason(code=f"host_{kind}", message=message, hint=hint, passes=False, **asdict(origin))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAttempt:
    """All that tells how a live attempt gets on."""

    state: AttemptState
    since: datetime
    #: The condition that its agent waits for.
    waiting_for: str | None
    session: SessionState
    heartbeat_at: datetime
    place: DeviceRef
    #: Longest wait for the gates, and longest duration of the run.
    gates_wait_s: float
    timeout_s: float


def attempt_reasons(attempt: LiveAttempt) -> list[PendingReason]:
    """Return what a running job waits for: its agent, its device, its phase."""
    reasons: list[PendingReason] = []
    if attempt.session is not SessionState.LIVE:
        reasons.append(_silent_agent_reason(attempt))
    if attempt.place.presence is not Presence.ONLINE:
        reasons.append(_unreachable_reason(attempt.place))
    if attempt.state is AttemptState.PREPARING and attempt.waiting_for:
        reasons.append(_gates_reason(attempt, attempt.waiting_for))
    else:
        message, hint = _phase(attempt)
        reasons.append(_attempt_reason(attempt.state, message, hint, attempt.since))
    return reasons


def _silent_agent_reason(attempt: LiveAttempt) -> PendingReason:
    host = attempt.place.host
    return PendingReason(
        code="session_silent",
        message=f"the agent on {host} has not called",
        hint=f"check whether it runs on {host}; its running attempts count once it is back, and are retried"
        " if it stays away",
        passes=False,
        **asdict(StateOrigin(since=attempt.heartbeat_at)),
    )


def _unreachable_reason(place: DeviceRef) -> PendingReason:
    """Return the reason for a detached run, which may continue while its device is unreachable."""
    hint = presence_advice(place.presence, host=place.host)
    return PendingReason(
        code="not_online",
        message=f"the device is not online ({place.presence}), and the run may still be in progress there",
        hint=hint or "wait: Android is starting",
        passes=hint is None,
        **asdict(StateOrigin()),
    )


def _gates_reason(attempt: LiveAttempt, waiting_for: str) -> PendingReason:
    limit = f"{attempt.gates_wait_s:.0f} s"
    hint = f"wait: after {limit} it is deferred; `gates:` of the matrix has the limits"
    return _attempt_reason(
        "gates_shut", f"the device is not fit for a run yet: {waiting_for}", hint, attempt.since
    )


def _attempt_reason(code: str, message: str, hint: str, since: datetime) -> PendingReason:
    return PendingReason(
        code=code, message=message, hint=hint, passes=True, **asdict(StateOrigin(since=since))
    )


def _phase(attempt: LiveAttempt) -> tuple[str, str]:
    host = attempt.place.host
    match attempt.state:
        case AttemptState.CLAIMED:
            return f"claimed by the agent on {host}, not started", "wait for its next call"
        case AttemptState.PREPARING:
            return "the device is given its files", "wait: large files take a while the first time"
        case AttemptState.MEASURING:
            return "it is being measured", f"wait: it is ended after {attempt.timeout_s:.0f} s at the latest"
        case AttemptState.REPORTING:
            return "its output is on the way to the farm", "wait: the agent keeps it until the farm has it"
        case AttemptState.FINISHED | AttemptState.RETURNED | AttemptState.LOST:
            return "the attempt is over", "wait for the next one"
        case _:
            assert_never(attempt.state)
