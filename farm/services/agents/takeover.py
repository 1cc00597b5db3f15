"""A phone that turns up at another host: what its old one had there ends, and may not go on (FAULTS 22)."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.devices.device import Presence
from farm.services.jobs.termination import lose_attempt
from farm.store.devices import devices, fencing_tokens
from farm.store.devices.devices import Device
from farm.store.jobs import attempts
from farm.wire.agents.protocol import DeviceReport

#: What an attempt is lost by whose phone was carried away.
DEVICE_MOVED = "host.device_moved"


def keeps_host(device: Device, report: DeviceReport) -> bool:
    """Whether a phone stays with its present host though another one reports it.

    I21: it is online in one place, and the second claimant is not believed. One that only sees something of
    it takes it from nobody who still does, nor from a run that may go on unseen.
    """
    if report.presence is Presence.ABSENT:
        # One that does not have it claims nothing.
        return True
    if report.presence is Presence.ONLINE:
        return device.session_live and device.presence is Presence.ONLINE
    if device.session_live:
        return device.presence is not Presence.ABSENT
    return device.job_id is not None


def take_over(connection: Connection, device: Device, host_id: HostId, *, now: datetime) -> Device:
    """End what the old host had on a phone, and raise its token.

    The new agent is asked to clean up to that token, and once it has begun no run of a lower one can start
    there any more; what the old agent says of such a run changes nothing, its finished report apart.
    """
    cause = f"it moved from {device.host_id} to {host_id}"
    live = attempts.find_live_attempt(connection, device.device_id)
    if live is not None:
        lose_attempt(
            connection,
            live,
            now=now,
            cause=f"{device.device_id} turned up at host {host_id}",
            code=DEVICE_MOVED,
        )
    if live is not None or device.cleaned_fence < device.fence:
        fencing_tokens.raise_fence_to(
            connection, device.device_id, device.fence + 1, now=now, actor=f"agent:{host_id}", cause=cause
        )
    return devices.get_device(connection, device.device_id)
