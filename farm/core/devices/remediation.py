"""Messages and advice to operators about devices that get no work."""

from collections.abc import Sequence
from shlex import quote
from typing import assert_never

from farm.core.devices.device import Blocker, Presence

#: A person's decision explains more than the device's state: a reserved one may well be unplugged.
_SHOWN_FIRST = (Blocker.RETIRED, Blocker.RESERVED)

#: The reason as a sentence for operators.
MESSAGE_BY_BLOCKER = {
    Blocker.SESSION_NOT_LIVE: "the host's agent is not connected",
    Blocker.HOST_DRAINING: "the host is draining and starts no new work",
    Blocker.NOT_ONLINE: "the device is not online",
    Blocker.PENDING: "the device awaits admission by an operator",
    Blocker.CORDONED: "the device is cordoned",
    Blocker.RESERVED: "the device is reserved by a person",
    Blocker.RETIRED: "the device is retired",
    Blocker.HEALTH_UNKNOWN: "the device has not passed its enrolment check yet",
    Blocker.HEALTH_SUSPECT: "the device is suspect and waits for a check",
    Blocker.HEALTH_BAD: "the device is bad",
    Blocker.BUSY: "the device is busy with another job",
    Blocker.DEVICE_ACTION: "an operator's action on the device is in progress",
    Blocker.NOT_CLEANED: "the device is not cleaned up after its last run",
    Blocker.CPU_SHARED: "another device on the same CPU is busy",
    Blocker.HOST_FULL: "the host has as many runs as it may have at once",
}


def sort_for_display(blockers: Sequence[Blocker]) -> list[Blocker]:
    """Sort a device's blockers, the one to show first.

    A busy device is never clean, so that blocker is left out.
    """
    is_busy = Blocker.BUSY in blockers
    relevant = [blocker for blocker in blockers if not (is_busy and blocker is Blocker.NOT_CLEANED)]
    return sorted(relevant, key=lambda blocker: blocker not in _SHOWN_FIRST)


def advice(blocker: Blocker, presence: Presence, *, name: str, host: str) -> str | None:
    """Return the next step against the first blocker; None where waiting is all there is to do.

    Args:
        blocker: the first thing in the way.
        presence: the device's state as its agent observes it.
        name: the device's name in commands.
        host: the host it is attached to.
    """
    match blocker:
        case Blocker.SESSION_NOT_LIVE:
            return f"check whether the agent runs on {host}, and its log"
        case Blocker.HOST_DRAINING:
            return f"farm host activate {host}"
        case Blocker.NOT_ONLINE:
            return presence_advice(presence, host=host)
        case Blocker.PENDING:
            return f"farm device admit {quote(name)}"
        case Blocker.CORDONED:
            return f"farm device uncordon {quote(name)}"
        case Blocker.RESERVED:
            return f"farm device release {quote(name)}"
        case Blocker.RETIRED:
            return f"farm device admit {quote(name)} takes it back"
        case Blocker.HEALTH_BAD:
            check = f"farm device check {quote(name)}"
            return f"fix it, then {check}; it is also re-checked automatically with increasing back-off"
        case Blocker.HEALTH_UNKNOWN | Blocker.HEALTH_SUSPECT:
            return None
        case (
            Blocker.BUSY
            | Blocker.DEVICE_ACTION
            | Blocker.NOT_CLEANED
            | Blocker.CPU_SHARED
            | Blocker.HOST_FULL
        ):
            return None
        case _:
            assert_never(blocker)


def presence_advice(presence: Presence, *, host: str) -> str | None:
    """Return how to get a device online."""
    match presence:
        case Presence.ONLINE | Presence.BOOTING:
            return None
        case Presence.OFFLINE:
            return "replug it; if that does not help, turn USB debugging off and on, or restart it"
        case Presence.UNAUTHORIZED:
            return "unlock it and allow USB debugging, always, for the key of this host"
        case Presence.NO_PERMISSION:
            return f"install the udev rules on {host} and replug it (docs/devices.md)"
        case Presence.WRONG_MODE:
            return "restart it into Android: it is in recovery, sideload or fastboot"
        case Presence.ABSENT:
            return f"check that it is plugged into {host}, switched on, with USB debugging on"
        case _:
            assert_never(presence)
