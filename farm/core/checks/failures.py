"""Failures of devices, and whether the device or its host is to blame (I15)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from farm.core.base.ids import AttemptId, DeviceId, HostId, JobId
from farm.core.checks.reference_run import REFERENCE_CODES
from farm.core.devices.device import Presence
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import AdbdRestarted, Blame, DeviceRebooted
from farm.core.jobs.job import JobKind

#: The code of attempts that were blamed on their phone before its host was seen to be behind it.
HOST_INCIDENT = "host.incident"
#: Failures of several devices within this time are one incident.
WINDOW = timedelta(seconds=60)
#: A device that is away so soon after its session opened may not have been found yet: the agent, its adb
#: server or the host has just started.
FIRST_LISTING = timedelta(seconds=30)
#: One device alone shows nothing about its host.
MIN_DEVICES = 2
#: An incident whose devices stay away ends after so long without further failures.
QUIET_AFTER = timedelta(minutes=10)
#: No incident of devices lasts longer: a device that comes and goes for ever fails on its own.
MAX_DURATION = timedelta(hours=24)
#: Caused by the device itself: no cable, hub or adb server reboots a device, or slows it.
_DEVICE_CAUSED_CODES = frozenset({DeviceRebooted.code, AdbdRestarted.code}) | REFERENCE_CODES


#: Incidents that an agent reports last while it reports them, and concern none of the devices.
REPORTED_BY_AGENTS = (IncidentKind.PRESSURE, IncidentKind.USB_FULL, IncidentKind.FILES_DAMAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostIncident:
    """Something that hit a host, or several of its phones at once."""

    incident_id: int
    kind: IncidentKind
    began_at: datetime
    #: None while it lasts.
    ended_at: datetime | None
    #: The phones it hit; what went wrong with them then is not held against them.
    devices: tuple[DeviceId, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident(HostIncident):
    """An incident, as it is stored."""

    host_id: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFailure:
    """A phone that went away, or an attempt that failed through its phone."""

    device_id: DeviceId
    at: datetime


def correlated_failures(
    failures: Iterable[DeviceFailure], online: Collection[DeviceId], *, now: datetime
) -> frozenset[DeviceId]:
    """Return the devices of a host that fail together; empty without such a group.

    Together are two at least, and half of those the host had a moment ago: of thirty phones two may well fail
    in one minute independently. `online` are the devices that can be reached now, at the window's end.
    """
    hit = {failure.device_id for failure in failures if timedelta(0) <= now - failure.at <= WINDOW}
    were_there = hit | set(online)
    return frozenset(hit) if len(hit) >= MIN_DEVICES and 2 * len(hit) >= len(were_there) else frozenset()


def may_be_host_caused(blame: Blame | None, code: str | None) -> bool:
    """Tell whether a failure blamed on a device may come from its host."""
    return blame is Blame.DEVICE and code not in _DEVICE_CAUSED_CODES


def became_unreachable(before: Presence, after: Presence) -> bool:
    """Tell whether a usable device became unreachable in a way that its host may have caused."""
    return before is Presence.ONLINE and after not in (Presence.ONLINE, Presence.BOOTING)


def find_usb_full_cause(cause_by_controller: Mapping[str, str]) -> str | None:
    """Return the cause and remedy for a host whose USB controllers are full; None when none is."""
    if not cause_by_controller:
        return None
    full = ", ".join(
        f"{controller} ({cause.rstrip('.')})" for controller, cause in sorted(cause_by_controller.items())
    )
    return (
        f"no further phone comes up on USB controller {full}: plug it in at another controller, take phones"
        " or hubs off this one, or use its USB 2 ports"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentProgress:
    """An incident that is not over, and the number of its devices still away."""

    began_at: datetime
    #: Time of its latest failure.
    last_failure_at: datetime
    away: int


def is_over(incident: IncidentProgress, *, now: datetime) -> bool:
    """Tell whether an incident has ended: its devices are back, it has been quiet for long, or it is too old.

    Not before the window is over: phones on a loose plug come back at once, and go again.
    """
    if now - incident.began_at >= MAX_DURATION:
        return True
    calm = now - incident.last_failure_at
    return calm >= QUIET_AFTER or (incident.away == 0 and calm >= WINDOW)


#: Failures blamed on the device, among its last five attempts, that make it suspect.
SUSPICIOUS_FAILURES = 3
#: A device that began to boot so often, over so long, and never finished, is in a boot loop.
BOOT_LOOP_CYCLES = 3
BOOT_LOOP_AFTER = timedelta(minutes=5)
#: The number of a device's last attempts that its health depends on.
RECENT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """An ended attempt on a device, as far as the health of the device is concerned."""

    attempt_id: AttemptId
    job_id: JobId
    kind: JobKind
    fence: int
    blame: Blame | None
    code: str | None
    #: The outcome of its job; None while that is open, or where it ended well.
    job_code: str | None
    host_id: HostId
    claimed_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChange:
    """A change of a device's health, as its event tells it."""

    device_id: DeviceId
    at: datetime
    before: str | None


def is_suspicious(recent: Sequence[Blame | None]) -> bool:
    """Judge by who was to blame in the last attempts; None stands for one that ended well."""
    return sum(1 for blame in recent if blame is Blame.DEVICE) >= SUSPICIOUS_FAILURES


def is_boot_loop(began_at: Sequence[datetime], *, now: datetime) -> bool:
    """Judge by when a phone began to start since it could last be used, oldest first."""
    return len(began_at) >= BOOT_LOOP_CYCLES and now - began_at[0] >= BOOT_LOOP_AFTER
