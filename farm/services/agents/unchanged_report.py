"""Whether what an agent says of its phones is what the farm knows already, and asks nothing of anybody."""

from collections.abc import Sequence

from farm.core.devices.device import Admin, Health, Presence
from farm.store.devices.devices import Device
from farm.wire.agents.protocol import DeviceReport


def is_report_unchanged(device: Device, report: DeviceReport) -> bool:
    """Whether a report of a phone by its own host changes nothing but when it was seen."""
    return (
        (device.presence, device.serial, device.detail) == (report.presence, report.serial, report.detail)
        and report.facts is None
        and report.condition in (None, device.condition)
        and report.recovery == device.recovery
        and not (report.recovery is not None and report.recovery.needs_approval)
        and not report.claimants
        and report.cleaned_fence <= device.cleaned_fence
        and report.known_fence <= device.fence
        and not _needs_attention(device)
    )


def is_device_idle(device: Device) -> bool:
    """Whether nothing is under way on a phone, nor to be done there but jobs."""
    return device.job_id is None and not device.has_device_action and device.cleaned_fence == device.fence


def is_inventory_unchanged(known: Sequence[Device], reports: Sequence[DeviceReport]) -> bool:
    """Whether a complete list of a host's phones has nothing new in it, and all of them are at rest."""
    report_by_id = {report.device_id: report for report in reports}
    here = {device.device_id: device for device in known}
    return report_by_id.keys() <= here.keys() and all(
        is_device_idle(device)
        and (
            is_report_unchanged(device, report_by_id[device.device_id])
            if device.device_id in report_by_id
            else device.presence is Presence.ABSENT
        )
        for device in known
    )


def _needs_attention(device: Device) -> bool:
    """Whether time alone brings something about: a check that is due, or a phone that is not trusted on."""
    if device.presence is not Presence.ONLINE:
        return False
    may_be_checked = device.admin is Admin.ACTIVE and device.health is not Health.GOOD
    return may_be_checked or (device.detail is not None and device.health is not Health.BAD)
