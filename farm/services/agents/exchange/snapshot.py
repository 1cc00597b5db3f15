"""All that the farm knows when it decides about an exchange: one module of reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId
from farm.core.checks.check_schedule import PastCheck
from farm.core.checks.failures import Incident
from farm.core.devices.device import Admin, Health, Presence
from farm.core.jobs.attempt import AttemptRecord
from farm.core.upkeep.device_action import DeviceAction, DeviceActionKind
from farm.database.transaction import Tx
from farm.store.checks import failures as device_failures
from farm.store.checks import incidents
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.hosts.hosts import Session, is_auto_admitting
from farm.store.jobs import attempts
from farm.store.upkeep import device_actions
from farm.wire.agents.protocol import DeviceReport, Exchange

#: Starts of a device that are longer ago are no part of a boot loop of today.
_BOOTS_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """A host, its devices and what is under way there, and the devices of other hosts that it reports.

    What few exchanges need is read only where the reports call for it, and empty otherwise.
    """

    at: datetime
    host_id: HostId
    #: The live attempts of the session, and those of them whose jobs were cancelled.
    attempts: Sequence[AttemptRecord]
    unwanted: frozenset[AttemptId]
    #: The host's devices.
    devices: Sequence[Device]
    #: Devices of other hosts that this one reports, and the live attempts there.
    elsewhere: Mapping[DeviceId, Device]
    attempt_elsewhere: Mapping[DeviceId, AttemptRecord]
    #: Facts of a device that the farm has never seen before.
    admits_as: Admin
    #: Those that are open.
    incidents: Sequence[Incident]
    #: Those that are open and that the agent may report.
    device_actions: Sequence[DeviceAction]
    #: The last checks, newest first, of devices whose health only a check can tell.
    past_checks: Mapping[DeviceId, Sequence[PastCheck]]
    #: Recent times at which devices began to start without coming up, oldest first.
    boots: Mapping[DeviceId, Sequence[datetime]]
    #: Devices that their host is to provision and whose settings were never inspected.
    unprovisioned: frozenset[DeviceId]

    @property
    def actor(self) -> str:
        """Return by whom changes are, in events."""
        return f"agent:{self.host_id}"


def load(tx: Tx, session: Session, request: Exchange) -> FleetSnapshot:
    """Read what decides about an exchange."""
    live = attempts.live_attempts(tx.connection, session.session_id)
    unwanted = attempts.attempts_to_stop(tx.connection, session.session_id) if live else ()
    return _with_devices(tx, session.host_id, request, live, frozenset(unwanted))


def reload_devices(tx: Tx, before: FleetSnapshot, request: Exchange) -> FleetSnapshot:
    """Read the devices of a snapshot again, and what their states call for; its attempts stay as read.

    Those of other hosts, too: an attempt that ended on a device that moved here has changed the device.
    """
    return _with_devices(tx, before.host_id, request, before.attempts, before.unwanted)


def _with_devices(
    tx: Tx, host_id: HostId, request: Exchange, live: Sequence[AttemptRecord], unwanted: frozenset[AttemptId]
) -> FleetSnapshot:
    report_by_id = {DeviceId(report.device_id): report for report in request.devices}
    own = devices.list_devices(tx.connection, host_id=host_id)
    unlisted = report_by_id.keys() - {device.device_id for device in own}
    elsewhere = [device for key in sorted(unlisted) if (device := devices.find_device(tx.connection, key))]
    reported = [
        (device, report_by_id[device.device_id])
        for device in (*own, *elsewhere)
        if device.device_id in report_by_id
    ]
    return FleetSnapshot(
        at=tx.now,
        host_id=host_id,
        attempts=live,
        unwanted=unwanted,
        devices=own,
        elsewhere={device.device_id: device for device in elsewhere},
        attempt_elsewhere={
            device.device_id: attempt
            for device in elsewhere
            if (attempt := attempts.find_live_attempt(tx.connection, device.device_id))
        },
        admits_as=_admits_as(tx.connection, host_id) if len(unlisted) > len(elsewhere) else Admin.PENDING,
        incidents=incidents.open_incidents(tx.connection, host_id),
        device_actions=_open_device_actions(tx.connection, host_id, elsewhere)
        if request.device_actions
        else (),
        past_checks=_past_checks(tx.connection, host_id, reported),
        boots=_boots(tx.connection, reported, since=tx.now - _BOOTS_WITHIN),
        unprovisioned=_unprovisioned_devices(tx.connection, reported),
    )


def is_usable(device: Device, report: DeviceReport) -> bool:
    """Return whether a device is online by a report; without its facts nothing can be planned for it."""
    return report.presence is Presence.ONLINE and (report.facts is not None or device.facts_id is not None)


def _admits_as(connection: Connection, host_id: HostId) -> Admin:
    return Admin.ACTIVE if is_auto_admitting(connection, host_id) else Admin.PENDING


def _open_device_actions(
    connection: Connection, host_id: HostId, elsewhere: Collection[Device]
) -> list[DeviceAction]:
    open_actions = device_actions.open_device_actions(connection, host_id=host_id)
    for device in elsewhere:
        open_actions += device_actions.open_device_actions(connection, device_id=device.device_id)
    return open_actions


def _past_checks(
    connection: Connection, host_id: HostId, reported: Collection[tuple[Device, DeviceReport]]
) -> dict[DeviceId, Sequence[PastCheck]]:
    return {
        device.device_id: device_failures.last_checks(connection, device.device_id)
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


def _unprovisioned_devices(
    connection: Connection, reported: Collection[tuple[Device, DeviceReport]]
) -> frozenset[DeviceId]:
    return frozenset(
        device.device_id
        for device, report in reported
        if report.wants_provisioning and is_usable(device, report) and device.admin is Admin.ACTIVE
        if device_actions.find_settings_record(connection, device.device_id) is None
        if device_actions.find_last_device_action(connection, device.device_id, DeviceActionKind.PROVISION)
        is None
    )
