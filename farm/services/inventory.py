"""Notes what an agent sees of its phones, and starts the checks by which phones earn their health."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.attempt import AttemptState
from farm.core.device import Admin, Health, Presence
from farm.core.ids import AttemptId, DeviceId, HostId
from farm.store import devices, hosts, jobs
from farm.store.devices import Device
from farm.wire.agent import DeviceReport

#: A phone that failed its check is checked again when it comes back: somebody may have seen to it.
_CHECKED_ON_RETURN = (Health.UNKNOWN, Health.SUSPECT, Health.BAD)


def note_devices(
    connection: Connection,
    host_id: HostId,
    reports: Sequence[DeviceReport],
    *,
    held: Collection[AttemptId],
    now: datetime,
) -> list[DeviceId]:
    """Apply a complete list of a host's phones: those it leaves out are absent.

    `held` are the attempts the agent has in hand. Returns the phones whose facts are wanted.
    """
    listed = {DeviceId(report.device_id): report for report in reports}
    known = {device.device_id: device for device in devices.list_devices(connection, host_id=host_id)}
    for device_id, device in known.items():
        if device_id not in listed and device.presence is not Presence.ABSENT:
            devices.mark_absent(
                connection, device_id, presence=device.presence, now=now, cause="adb does not list it"
            )
    return [
        device_id
        for device_id, report in listed.items()
        if not _note_device(connection, host_id, device_id, report, held=held, now=now)
    ]


def _note_device(
    connection: Connection,
    host_id: HostId,
    device_id: DeviceId,
    report: DeviceReport,
    *,
    held: Collection[AttemptId],
    now: datetime,
) -> bool:
    """Apply one report; False when the farm has no facts of the phone yet."""
    device = _known_device(connection, host_id, device_id, report, now=now)
    if device.host_id != host_id and device.session_live and device.presence is Presence.ONLINE:
        # I21: a phone is online in one place; the second claimant is not believed.
        return True
    facts_id = (
        devices.put_facts(connection, device_id, report.facts, now=now) if report.facts else device.facts_id
    )
    # Without facts nothing can be planned for it, so it is not online yet.
    presence = (
        Presence.BOOTING if report.presence is Presence.ONLINE and facts_id is None else report.presence
    )
    devices.update_seen(
        connection,
        device,
        host_id=host_id,
        serial=report.serial,
        presence=presence,
        detail=report.detail,
        facts_id=facts_id,
        condition=report.condition,
        cleaned_fence=_cleaned_fence(device, report, held),
        now=now,
    )
    if presence is Presence.ONLINE and device.presence is not Presence.ONLINE:
        _check_on_arrival(connection, device, now=now)
    return facts_id is not None or report.presence is not Presence.ONLINE


def _cleaned_fence(device: Device, report: DeviceReport, held: Collection[AttemptId]) -> int:
    """Up to which token the phone is clean.

    The agent may never have heard of an attempt that was given back, and then cannot quote its token. Nothing
    of it ran, and once the agent does not hold it, nothing will.
    """
    nothing_ran = (
        device.last_attempt_state is AttemptState.GIVEN_BACK
        and device.last_attempt_id not in held
        and device.cleaned_fence == device.fence - 1
    )
    return max(device.fence if nothing_ran else 0, report.cleaned_fence)


def _known_device(
    connection: Connection, host_id: HostId, device_id: DeviceId, report: DeviceReport, *, now: datetime
) -> Device:
    found = devices.find_device(connection, device_id)
    if found is not None:
        return found
    admin = Admin.ACTIVE if hosts.is_auto_admitting(connection, host_id) else Admin.PENDING
    devices.add_device(
        connection, device_id=device_id, host_id=host_id, serial=report.serial, admin=admin, now=now
    )
    added = devices.find_device(connection, device_id)
    if added is None:
        raise LookupError(f"device {device_id} was added a moment ago")
    return added


def _check_on_arrival(connection: Connection, device: Device, *, now: datetime) -> None:
    if device.admin is Admin.ACTIVE and device.health in _CHECKED_ON_RETURN:
        jobs.add_check(connection, device.device_id, now=now, cause=f"its health is {device.health}")
