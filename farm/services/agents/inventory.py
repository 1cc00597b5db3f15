"""Notes what an agent sees of its phones, and starts the checks by which phones earn their health."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import AttemptId, DeviceId, HostId
from farm.core.checks.incident import became_unreachable
from farm.core.devices.device import Admin, Health, Presence
from farm.core.jobs.attempt import AttemptState
from farm.services.access.refused_requests import record_ambiguous_serial, record_second_claim
from farm.services.agents.fencing import raise_fences
from farm.services.agents.takeover import keeps_host, take_over
from farm.services.agents.unchanged_report import is_report_unchanged
from farm.services.checks.checks import apply_failed_cleanup, detect_boot_loop, queue_check_if_needed
from farm.services.checks.incidents import detect_incident
from farm.services.devices.software_updates import record_update
from farm.services.upkeep.charging import record_charging
from farm.services.upkeep.device_settings import provision_where_wanted
from farm.services.upkeep.recovery import clear_recovery_alarm, record_recovery
from farm.store.devices import devices
from farm.store.devices import facts as device_facts
from farm.store.devices import reports as device_reports
from farm.store.devices import transitions as device_transitions
from farm.store.devices.devices import Device
from farm.store.devices.reports import DeviceStatusUpdate
from farm.store.devices.unit_numbers import assign_unit_number
from farm.store.hosts import hosts
from farm.wire.agents.protocol import DeviceReport


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryResult:
    """What came of an agent's list of phones."""

    #: Phones whose facts are wanted.
    wanted: Sequence[DeviceId]
    #: All phones of the host, where no row of theirs says another thing than before; else they have to be
    #: looked up again.
    unchanged: Sequence[Device] | None


def record_devices(
    connection: Connection,
    host_id: HostId,
    reports: Sequence[DeviceReport],
    *,
    held: Collection[AttemptId],
    now: datetime,
) -> InventoryResult:
    """Apply a complete list of a host's phones: those it leaves out are absent.

    `held` are the attempts the agent has in hand.
    """
    listed = {DeviceId(report.device_id): report for report in reports}
    here = devices.list_devices(connection, host_id=host_id)
    known = {device.device_id: device for device in here}
    gone = [each for each in here if each.device_id not in listed and each.presence is not Presence.ABSENT]
    for device in gone:
        device_reports.mark_absent(
            connection, device.device_id, presence=device.presence, now=now, cause="adb does not list it"
        )
    heard = []
    for device_id, report in listed.items():
        device = known.get(device_id) or _adopt_device(connection, host_id, report, now=now)
        seen = _observe(connection, host_id, device, report, held=held, now=now)
        if seen is not None:
            heard.append((seen, report))
    device_reports.record_status_updates(connection, host_id, [seen for seen, _ in heard], now=now)
    for seen, report in heard:
        _apply(connection, host_id, seen, report, now=now)
    if any(_is_disconnect(device, listed.get(device_id)) for device_id, device in known.items()):
        detect_incident(connection, host_id, now=now)
    is_old = not gone and all(_is_unchanged(host_id, seen, report) for seen, report in heard)
    # Without facts nothing can be planned for a phone, so it is not online yet.
    wanted = [seen.device.device_id for seen, report in heard if seen.presence is not report.presence]
    return InventoryResult(wanted=wanted, unchanged=here if is_old else None)


def _is_disconnect(device: Device, report: DeviceReport | None) -> bool:
    return became_unreachable(device.presence, Presence.ABSENT if report is None else report.presence)


def _is_unchanged(host_id: HostId, seen: DeviceStatusUpdate, report: DeviceReport) -> bool:
    return seen.is_unchanged(host_id) and is_report_unchanged(seen.device, report)


def _observe(
    connection: Connection,
    host_id: HostId,
    device: Device,
    report: DeviceReport,
    *,
    held: Collection[AttemptId],
    now: datetime,
) -> DeviceStatusUpdate | None:
    """What a report says of a phone; None where the phone stays with another host."""
    if device.host_id != host_id:
        if keeps_host(device, report):
            if report.presence is Presence.ONLINE:
                record_second_claim(connection, device, host_id, now=now)
            return None
        device = take_over(connection, device, host_id, now=now)
    facts_id = (
        device_facts.put_facts(connection, device.device_id, report.facts, now=now)
        if report.facts
        else device.facts_id
    )
    if report.facts:
        record_update(connection, device, report.facts, host_id, now=now)
    if report.facts and device.unit is None:
        assign_unit_number(connection, device.device_id, report.facts.device_model, now=now)
    is_unknown = report.presence is Presence.ONLINE and facts_id is None
    return DeviceStatusUpdate(
        device=device,
        serial=report.serial,
        presence=Presence.BOOTING if is_unknown else report.presence,
        detail=report.detail,
        condition=report.condition,
        recovery=report.recovery,
        cleaned_fence=_cleaned_fence(device, report, held),
    )


def _apply(
    connection: Connection, host_id: HostId, seen: DeviceStatusUpdate, report: DeviceReport, *, now: datetime
) -> None:
    """What follows from what was seen, once it is noted."""
    record_charging(connection, seen.device, report.condition, host_id, now=now)
    record_recovery(connection, seen.device, report.recovery, host_id, now=now)
    clear_recovery_alarm(connection, seen.device, report, now=now)
    if report.claimants:
        record_ambiguous_serial(connection, seen.device, report.claimants, host_id, now=now)
    _apply_fence(connection, host_id, seen.device, report, now=now)
    _queue_needed_check(connection, seen.device, host_id, seen.presence, report, now=now)


def _apply_fence(
    connection: Connection, host_id: HostId, device: Device, report: DeviceReport, *, now: datetime
) -> None:
    """Never give a token twice: the phone may come from another farm, or the database was put back."""
    known = max(report.known_fence, report.cleaned_fence)
    if known > device.fence:
        raise_fences(connection, host_id, {device.device_id: known}, now=now)


def _queue_needed_check(
    connection: Connection,
    device: Device,
    host_id: HostId,
    presence: Presence,
    report: DeviceReport,
    *,
    now: datetime,
) -> None:
    """Start the check that a phone needs: one that moved was in somebody's hands, and has another cable."""
    has_moved = device.host_id != host_id
    if has_moved:
        trusted = [Health.GOOD, Health.SUSPECT]
        cause = f"it moved from {device.host_id} to {host_id}"
        device_transitions.move_health(
            connection, device.device_id, sources=trusted, to=Health.UNKNOWN, now=now, cause=cause
        )
        device = devices.get_device(connection, device.device_id)
    detect_boot_loop(connection, device, presence, now=now)
    if presence is Presence.ONLINE and report.detail is not None:
        apply_failed_cleanup(connection, device.device_id, report.detail, now=now)
    if presence is Presence.ONLINE and report.wants_provisioning:
        provision_where_wanted(connection, device, host_id, now=now)
    if presence is Presence.ONLINE:
        arrived = has_moved or device.presence is not Presence.ONLINE
        queue_check_if_needed(connection, device, arrived=arrived, now=now)


def _cleaned_fence(device: Device, report: DeviceReport, held: Collection[AttemptId]) -> int:
    """Up to which token the phone is clean.

    The agent may never have heard of an attempt that was given back, and then cannot quote its token. Nothing
    of it ran, and once the agent does not hold it, nothing will; unless its token is known there all the
    same: then an agent began it whose word was lost, with its folder or on the way.
    """
    nothing_ran = (
        device.last_attempt_state is AttemptState.RETURNED
        and device.last_attempt_id not in held
        and device.cleaned_fence == device.fence - 1
        and report.known_fence < device.fence
    )
    return max(device.fence if nothing_ran else 0, report.cleaned_fence)


def _adopt_device(connection: Connection, host_id: HostId, report: DeviceReport, *, now: datetime) -> Device:
    """A phone that this host did not have before: another host's, or a new one."""
    device_id = DeviceId(report.device_id)
    found = devices.find_device(connection, device_id)
    if found is not None:
        return found
    admin = Admin.ACTIVE if hosts.is_auto_admitting(connection, host_id) else Admin.PENDING
    return device_reports.add_device(
        connection, device_id=device_id, host_id=host_id, serial=report.serial, admin=admin, now=now
    )
