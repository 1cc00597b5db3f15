"""All that the farm knows when it decides about an exchange: one module of reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId
from farm.core.checks.check_schedule import PastCheck
from farm.core.checks.incident import Incident
from farm.core.devices.device import Admin, Health, Presence
from farm.core.jobs.attempt import Attempt
from farm.core.upkeep.device_action import DeviceActionKind
from farm.store.checks import failures as device_failures
from farm.store.checks import incidents
from farm.store.checks import outcomes as check_outcomes
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts.hosts import Session, is_auto_admitting
from farm.store.jobs import attempts
from farm.store.upkeep import device_actions, device_settings
from farm.store.upkeep.device_actions import DeviceAction
from farm.wire.agents.protocol import DeviceReport, Exchange

#: Starts of a device that are longer ago are no part of a boot loop of today.
_BOOTS_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """A host, its devices and what is under way there, and the devices of other hosts that it reports.

    What few exchanges need is read only where the reports call for it, and empty otherwise.
    """

    host_id: HostId
    #: The live attempts of the session, and those of them whose jobs were cancelled.
    attempts: Sequence[Attempt]
    unwanted: frozenset[AttemptId]
    #: The host's devices.
    devices: Sequence[Device]
    #: Devices of other hosts that this one reports, and the live attempts there.
    elsewhere: Mapping[DeviceId, Device]
    attempt_elsewhere: Mapping[DeviceId, Attempt]
    #: What a device is that the farm has never seen before.
    admits_as: Admin
    #: Those that are open.
    incidents: Sequence[Incident]
    #: Those that are open and that the agent may report.
    device_actions: Sequence[DeviceAction]
    #: The last checks, newest first, of devices whose health only a check can tell.
    past_checks: Mapping[DeviceId, Sequence[PastCheck]]
    #: When devices that begin to start did so lately without coming up, oldest first.
    boots: Mapping[DeviceId, Sequence[datetime]]
    #: Devices that their host is to provision and whose settings nobody has looked at.
    unprovisioned: frozenset[DeviceId]


def load(connection: Connection, session: Session, said: Exchange, *, now: datetime) -> FleetSnapshot:
    """Read what decides about an exchange."""
    host_id = session.host_id
    report_by_id = {DeviceId(report.device_id): report for report in said.devices}
    own = devices.list_devices(connection, host_id=host_id)
    unlisted = report_by_id.keys() - {device.device_id for device in own}
    elsewhere = [found for key in sorted(unlisted) if (found := devices.find_device(connection, key))]
    reported = [
        (device, report_by_id[device.device_id])
        for device in (*own, *elsewhere)
        if device.device_id in report_by_id
    ]
    live = attempts.live_attempts(connection, session.session_id)
    return FleetSnapshot(
        host_id=host_id,
        attempts=live,
        unwanted=frozenset(attempts.attempts_to_stop(connection, session.session_id) if live else ()),
        devices=own,
        elsewhere={device.device_id: device for device in elsewhere},
        attempt_elsewhere={
            device.device_id: attempt
            for device in elsewhere
            if (attempt := attempts.find_live_attempt(connection, device.device_id))
        },
        admits_as=_admits_as(connection, host_id) if len(unlisted) > len(elsewhere) else Admin.PENDING,
        incidents=incidents.open_incidents(connection, host_id),
        device_actions=_open_errands(connection, host_id, elsewhere) if said.device_actions else (),
        past_checks=_past_checks(connection, host_id, reported),
        boots=_boots(connection, reported, since=now - _BOOTS_WITHIN),
        unprovisioned=_unprovisioned(connection, reported),
    )


def is_usable(device: Device, report: DeviceReport) -> bool:
    """Return whether a device is online by a report; without its facts nothing can be planned for it."""
    return report.presence is Presence.ONLINE and (report.facts is not None or device.facts_id is not None)


def _admits_as(connection: Connection, host_id: HostId) -> Admin:
    return Admin.ACTIVE if is_auto_admitting(connection, host_id) else Admin.PENDING


def _open_errands(
    connection: Connection, host_id: HostId, elsewhere: Collection[Device]
) -> list[DeviceAction]:
    found = device_actions.open_device_actions(connection, host_id=host_id)
    for device in elsewhere:
        found += device_actions.open_device_actions(connection, device_id=device.device_id)
    return found


def _past_checks(
    connection: Connection, host_id: HostId, reported: Collection[tuple[Device, DeviceReport]]
) -> dict[DeviceId, Sequence[PastCheck]]:
    return {
        device.device_id: check_outcomes.last_checks(connection, device.device_id)
        for device, report in reported
        if is_usable(device, report) and device.admin is Admin.ACTIVE
        # A good device is checked where it moved.
        if device.health is not Health.GOOD or device.host_id != host_id
    }


def _boots(
    connection: Connection, reported: Collection[tuple[Device, DeviceReport]], *, since: datetime
) -> dict[DeviceId, Sequence[datetime]]:
    return {
        device.device_id: device_failures.boots_since(connection, device.device_id, since)
        for device, report in reported
        if device.presence is not Presence.BOOTING
        if report.presence in (Presence.BOOTING, Presence.ONLINE) and not is_usable(device, report)
    }


def _unprovisioned(
    connection: Connection, reported: Collection[tuple[Device, DeviceReport]]
) -> frozenset[DeviceId]:
    return frozenset(
        device.device_id
        for device, report in reported
        if report.wants_provisioning and is_usable(device, report) and device.admin is Admin.ACTIVE
        if device_settings.find_settings_record(connection, device.device_id) is None
        if device_actions.find_last_device_action(connection, device.device_id, DeviceActionKind.PROVISION)
        is None
    )
