"""A phone's state in a few words."""

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
    "wrong_mode": "not in Android",
    "absent": "absent",
}
_BLOCKER_TEXT = {
    "session_not_live": "agent not connected",
    "host_draining": "host drains",
    "pending": "to be admitted",
    "cordoned": "cordoned",
    "retired": "retired",
    "health_unknown": "to be checked",
    "health_suspect": "suspect, to be checked",
    "health_bad": "bad",
    "device_action": "at an errand",
    "not_cleaned": "being cleaned up",
    "cpu_shared": "waits for its CPU",
    "host_full": "waits for its host",
}
#: What somebody must see to; a busy phone, or one that is to be checked, looks after itself.
_SICK_CODES = ("session_not_live", "not_online", "pending", "health_bad")


#: Hours are told up to here.
_DAYS_FROM_S = 2 * 86400


def device_state_text(view: DeviceView) -> str:
    """`free`, `at job 7`, `held by anna until 2026-11-20 18:40, finishes job 7`, `bad`."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first is None:
        return "free"
    if first == "busy":
        return f"at job {view.job_id}"
    if first in ("health_unknown", "health_suspect") and view.job_id is not None:
        return f"being checked (job {view.job_id})"
    words = _primary_text(view, first)
    return words if view.job_id is None else f"{words}, finishes job {view.job_id}"


def since_text(view: DeviceView, now: datetime | None = None) -> str:
    """How long it has been so; `-` where that is not known."""
    if view.since is None:
        return EMPTY_CELL
    seconds = max(0.0, ((now or datetime.now(UTC)) - view.since).total_seconds())
    return elapsed_text(seconds) if seconds < _DAYS_FROM_S else f"{seconds / 86400:.0f} days"


def find_remedy(view: DeviceView) -> str | None:
    """Why a phone needs somebody, and what that person can do; None for one that needs nobody."""
    first = view.blocked_by[0] if view.blocked_by else None
    if first == "cordoned" and view.why:
        return f"{view.name}: cordoned: {view.why}"
    if first not in _SICK_CODES or view.advice is None:
        return None
    cause = _detail(view) if first == "not_online" else view.why if first == "health_bad" else None
    tried = recovery_text(view.recovery) if view.recovery is not None else None
    return ": ".join(part for part in (view.name, cause, tried, view.advice) if part)


def recovery_text(recovery: Recovery) -> str:
    """`tried reprobe, reconnect; next: reboot`."""
    tried = ", ".join(_step_text(each.step) for each in recovery.tries if each.step is not RecoveryStep.HUMAN)
    if recovery.failed:
        return f"tried {tried or 'nothing'}, in vain"
    waits = f"next: {_step_text(recovery.next)}" if recovery.next is not None else ""
    return "; ".join(part for part in (tried and f"tried {tried}", waits) if part)


def reservation_text(view: DeviceView) -> str:
    """`held by anna until 2026-11-20 18:40`, in the reader's own time zone."""
    return f"held by {view.reserved_by} until {local_time_text(view.reserved_until)}"


def _step_text(step: RecoveryStep) -> str:
    return "call somebody" if step is RecoveryStep.HUMAN else step.replace("_", " ")


def _detail(view: DeviceView) -> str | None:
    """Why it is not online, unless that only repeats its presence."""
    return None if view.detail and view.presence in view.detail else view.detail


def _primary_text(view: DeviceView, first: str) -> str:
    if first == "held":
        return reservation_text(view)
    if first == "not_online":
        return _PRESENCE.get(view.presence, view.presence)
    return _BLOCKER_TEXT.get(first, first.replace("_", " "))
