"""Host incidents: several devices of a host that fail together are the host's failure (I15)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.reference_run import REFERENCE_CODES
from farm.core.devices.device import Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import AdbdRestarted, Blame, DeviceRebooted

#: What an attempt ended with that was blamed on its phone before its host was seen to be behind it.
HOST_INCIDENT = "host.incident"
#: Trouble of several phones within this time is one thing.
WINDOW = timedelta(seconds=60)
#: One phone alone tells nothing of its host.
MIN_DEVICES = 2
#: An incident whose phones stay away ends after so long without further trouble.
QUIET_AFTER = timedelta(minutes=10)
#: No incident of phones lasts longer: one that comes and goes for ever is that phone's own trouble.
MAX_DURATION = timedelta(hours=24)
#: What a phone does of itself; no cable, hub or adb server makes a phone start anew, or slow.
_DEVICE_CAUSED_CODES = frozenset({DeviceRebooted.code, AdbdRestarted.code}) | REFERENCE_CODES


#: What an agent says of its host as a whole lasts while it says so, and is about none of the phones.
REPORTED_BY_AGENTS = (IncidentKind.PRESSURE, IncidentKind.USB_FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident of a host, as it is stored."""

    incident_id: int
    host_id: HostId
    kind: IncidentKind
    began_at: datetime
    ended_at: datetime | None
    devices: tuple[DeviceId, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFailure:
    """A phone that went away, or an attempt that failed through its phone."""

    device_id: DeviceId
    at: datetime


def correlated_failures(
    troubles: Iterable[DeviceFailure], online: Collection[DeviceId], *, now: datetime
) -> frozenset[DeviceId]:
    """Return the devices of a host that fail together; empty without such a group.

    Together are two at least, and half of those the host had a moment ago: of thirty phones two may well fail
    in one minute, each by itself.

    Args:
        troubles: of the host's phones.
        online: those that can be reached now.
        now: the end of the window that is looked at.
    """
    hit = {trouble.device_id for trouble in troubles if timedelta(0) <= now - trouble.at <= WINDOW}
    were_there = hit | set(online)
    return frozenset(hit) if len(hit) >= MIN_DEVICES and 2 * len(hit) >= len(were_there) else frozenset()


def may_be_host_caused(blame: Blame | None, code: str | None) -> bool:
    """Tell whether a failure blamed on a device may come from its host."""
    return blame is Blame.DEVICE and code not in _DEVICE_CAUSED_CODES


def became_unreachable(before: Presence, after: Presence) -> bool:
    """Tell whether a usable device became unreachable in a way that its host may have caused."""
    return before is Presence.ONLINE and after not in (Presence.ONLINE, Presence.BOOTING)


def find_usb_full_cause(said_by_controller: Mapping[str, str]) -> str | None:
    """Return the cause and remedy for a host whose USB controllers are full; None when none is."""
    if not said_by_controller:
        return None
    full = ", ".join(
        f"{controller} ({said.rstrip('.')})" for controller, said in sorted(said_by_controller.items())
    )
    return (
        f"no further phone comes up on USB controller {full}: plug it in at another controller, take phones"
        " or hubs off this one, or use its USB 2 ports"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIncident:
    """An incident that is not over, and what its phones do meanwhile."""

    began_at: datetime
    #: Of the trouble that was last part of it.
    last_trouble_at: datetime
    away: int


def is_over(incident: OpenIncident, *, now: datetime) -> bool:
    """Tell whether an incident has ended: its devices are back, it has been quiet for long, or it is too old.

    Not before the window is over: phones on a loose plug come back at once, and go again.
    """
    if now - incident.began_at >= MAX_DURATION:
        return True
    calm = now - incident.last_trouble_at
    return calm >= QUIET_AFTER or (incident.away == 0 and calm >= WINDOW)
