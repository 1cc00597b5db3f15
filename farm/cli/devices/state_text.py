"""The state of a device in a few words."""

from datetime import UTC, datetime

from farm.cli.shell.formatting import EMPTY_CELL, local_time_text
from farm.core.base.units import elapsed_text
from farm.core.upkeep.recovery import Recovery, RecoveryStep
from farm.wire.documents.devices import DeviceView

_PRESENCE = {
    "booting": "booting",
    "offline": "offline",
    "unauthorized": "unauthorized",
    "no_permission": "no USB permission",
    "wrong_mode": "in recovery/bootloader",
    "absent": "absent",
}
_BLOCKER_TEXT = {
    "session_not_live": "agent not connected",
    "host_draining": "host draining",
    "pending": "awaiting admission",
    "cordoned": "cordoned",
    "retired": "retired",
    "health_unknown": "awaiting check",
    "health_suspect": "suspect, awaiting check",
    "health_bad": "bad",
    "device_action": "maintenance",
    "not_cleaned": "being cleaned up",
    "cpu_shared": "waiting for shared CPU",
    "host_full": "waiting for host capacity",
}
#: Blockers that need an operator; the others end without one.
_OPERATOR_CODES = ("session_not_live", "not_online", "pending", "health_bad")


#: Longer times are shown in days.
_DAYS_FROM_S = 2 * 86400


def device_state_text(view: DeviceView) -> str:
    """Return `free`, `running job 7`, `reserved by anna until 2026-11-20 18:40, finishing job 7`, `bad`."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first is None:
        return "free"
    if first == "busy":
        return f"running job {view.job_id}"
    if first in ("health_unknown", "health_suspect") and view.job_id is not None:
        return f"being checked (job {view.job_id})"
    text = _blocker_text(view, first)
    return text if view.job_id is None else f"{text}, finishing job {view.job_id}"


def since_text(view: DeviceView, now: datetime | None = None) -> str:
    """Return how long the device has been in this state; `-` if that is unknown."""
    if view.since is None:
        return EMPTY_CELL
    seconds = max(0.0, ((now or datetime.now(UTC)) - view.since).total_seconds())
    return elapsed_text(seconds) if seconds < _DAYS_FROM_S else f"{seconds / 86400:.0f} days"


def find_remedy(view: DeviceView) -> str | None:
    """Return why a device needs an operator and what the operator can do; None if it needs none."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first == "cordoned" and view.why:
        return f"{view.name}: cordoned: {view.why}"
    if first not in _OPERATOR_CODES or view.advice is None:
        return None
    cause = _detail(view) if first == "not_online" else view.why if first == "health_bad" else None
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


def reservation_text(view: DeviceView) -> str:
    """Return `reserved by anna until 2026-11-20 18:40`, in the local time zone."""
    return f"reserved by {view.reserved_by} until {local_time_text(view.reserved_until)}"


def _step_text(step: RecoveryStep) -> str:
    return "needs an operator" if step is RecoveryStep.HUMAN else step.replace("_", " ")


def _detail(view: DeviceView) -> str | None:
    """Return why it is not online, unless that only repeats its presence."""
    return None if view.detail and view.presence in view.detail else view.detail


def _blocker_text(view: DeviceView, first: str) -> str:
    if first == "reserved":
        return reservation_text(view)
    if first == "not_online":
        return _PRESENCE.get(view.presence, view.presence)
    return _BLOCKER_TEXT.get(first, first.replace("_", " "))
