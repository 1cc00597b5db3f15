"""The state of a device as text: what it does, why it gets no work, and what an operator can do."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from farm.core.devices.device import Blocker, Presence
from farm.core.upkeep.recovery import Recovery, RecoveryStep
from farm.presentation.text import EMPTY_CELL, age_text, local_time_text
from farm.wire.documents.devices import DeviceView

_PRESENCE_TEXT: Mapping[str, str] = {
    Presence.NO_PERMISSION: "no USB permission",
    Presence.WRONG_MODE: "in recovery/bootloader",
}
_BLOCKER_TEXT: Mapping[str, str] = {
    Blocker.SESSION_NOT_LIVE: "agent not connected",
    Blocker.PENDING: "awaiting admission",
    Blocker.HEALTH_UNKNOWN: "awaiting check",
    Blocker.HEALTH_SUSPECT: "suspect, awaiting check",
    Blocker.HEALTH_BAD: "bad",
    Blocker.DEVICE_ACTION: "maintenance",
    Blocker.NOT_CLEANED: "being cleaned up",
    Blocker.CPU_SHARED: "waiting for shared CPU",
    Blocker.HOST_FULL: "waiting for host capacity",
}
#: Blockers that need an operator; the others end without one.
_OPERATOR_CODES = (Blocker.SESSION_NOT_LIVE, Blocker.NOT_ONLINE, Blocker.PENDING, Blocker.HEALTH_BAD)


def device_state_text(view: DeviceView) -> str:
    """Return `free`, `running job 7`, `reserved by anna until 2026-11-20 18:40, finishing job 7`, `bad`."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first is None:
        return "free"
    if first == Blocker.BUSY:
        return f"running job {view.job_id}"
    if first in (Blocker.HEALTH_UNKNOWN, Blocker.HEALTH_SUSPECT) and view.job_id is not None:
        return f"being checked (job {view.job_id})"
    text = _blocker_text(view, first)
    return text if view.job_id is None else f"{text}, finishing job {view.job_id}"


class Blocked(Protocol):
    """A device with the codes of what keeps it from work."""

    @property
    def blocked_by(self) -> Sequence[str]: ...
    @property
    def job_id(self) -> int | None: ...


class StateClass(StrEnum):
    """The class of a device's state; those that work first."""

    BUSY = "busy"
    FREE = "free"
    WAITS = "waits"
    DOWN = "down"


#: In the same order.
STATE_TEXT: Mapping[StateClass, str] = MappingProxyType(
    {
        StateClass.BUSY: "running",
        StateClass.FREE: "free",
        StateClass.WAITS: "not available",
        StateClass.DOWN: "needs attention",
    }
)


def device_groups(fleet: Iterable[tuple[Blocked, int]]) -> Sequence[tuple[StateClass, str, int]]:
    """Return class, words and number of devices in each state, those that work first.

    Args:
        fleet: devices, each with the number of those that are like it.
    """
    groups = Counter[tuple[StateClass, str]]()
    for device, count in fleet:
        groups[device_group(device)] += count
    return [
        (kind, words, count)
        for (kind, words), count in sorted(
            groups.items(), key=lambda item: ([*StateClass].index(item[0][0]), item[0])
        )
    ]


def device_group(device: Blocked) -> tuple[StateClass, str]:
    """Return the class of a device's state, and its words."""
    first = device.blocked_by[0] if device.blocked_by else None
    if first == Blocker.PENDING and device.job_id is None:
        return StateClass.WAITS, _BLOCKER_TEXT[Blocker.PENDING]
    if first is None:
        kind = StateClass.FREE
    elif first == Blocker.BUSY or device.job_id is not None:
        kind = StateClass.BUSY
    elif first in (Blocker.SESSION_NOT_LIVE, Blocker.NOT_ONLINE, Blocker.HEALTH_BAD):
        kind = StateClass.DOWN
    else:
        kind = StateClass.WAITS
    return kind, STATE_TEXT[kind]


def is_found(view: DeviceView, text: str, state: StateClass | None) -> bool:
    """Return whether a device is in a state, and has all words of a text; an empty filter leaves none out."""
    names = (view.label, view.device_id, view.host, view.device_model, view.soc, *view.tags)
    return (state is None or device_group(view)[0] == state) and has_words(text, names)


def has_words(text: str, names: Iterable[str | None]) -> bool:
    """Return whether each word of a text is somewhere in the names of a device, in any case."""
    known = " ".join(filter(None, names)).casefold()
    return all(word in known for word in text.casefold().split())


def since_text(view: DeviceView, now: datetime | None = None) -> str:
    """Return how long the device has been in this state; `-` if that is unknown."""
    return EMPTY_CELL if view.since is None else age_text(view.since, now or datetime.now(UTC))


def may_need_operator(device: Blocked) -> bool:
    """Return whether `find_remedy` may have something to say of a device."""
    return bool(device.blocked_by) and device.blocked_by[0] in (*_OPERATOR_CODES, Blocker.CORDONED)


def find_remedy(view: DeviceView) -> str | None:
    """Return why a device needs an operator and what the operator can do; None if it needs none."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first in (Blocker.HEALTH_UNKNOWN, Blocker.HEALTH_SUSPECT) and view.why and "deferred" in view.why:
        return f"{view.name}: {view.why}"
    if first == Blocker.CORDONED and view.why:
        return f"{view.name}: cordoned: {view.why}"
    if first not in _OPERATOR_CODES or view.advice is None:
        return None
    cause = (
        _detail(view) if first == Blocker.NOT_ONLINE else view.why if first == Blocker.HEALTH_BAD else None
    )
    tried = recovery_text(view.recovery) if view.recovery is not None else None
    return ": ".join(part for part in (view.name, cause, tried, view.advice) if part)


def recovery_text(recovery: Recovery) -> str:
    """Return `tried reprobe, reconnect; next: reboot`."""
    tried = ", ".join(
        _step_text(attempt.step) for attempt in recovery.tries if attempt.step is not RecoveryStep.HUMAN
    )
    if recovery.failed:
        return f"tried {tried or 'nothing'}; no effect"
    planned = f"next: {_step_text(recovery.next)}" if recovery.next is not None else ""
    return "; ".join(part for part in (tried and f"tried {tried}", planned) if part)


def _step_text(step: RecoveryStep) -> str:
    return "needs an operator" if step is RecoveryStep.HUMAN else step.replace("_", " ")


def _detail(view: DeviceView) -> str | None:
    """Return why it is not online, unless that only repeats its presence."""
    return None if view.detail and view.presence in view.detail else view.detail


def _blocker_text(view: DeviceView, first: str) -> str:
    if first == Blocker.RESERVED:
        return f"reserved by {view.reserved_by} until {local_time_text(view.reserved_until)}"
    if first == Blocker.NOT_ONLINE:
        return _PRESENCE_TEXT.get(view.presence, view.presence)
    # A newer farm may have other codes.
    return _BLOCKER_TEXT.get(first, first.replace("_", " "))
