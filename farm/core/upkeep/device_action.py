"""Device actions: operator requests to an agent, outside of any job."""

from enum import StrEnum

from farm.core.base.ids import HostId, JobId
from farm.core.devices.device import DeviceState, Presence


class DeviceActionKind(StrEnum):
    """The kinds of device action; none happens while a run is on the device."""

    #: Wake the screen and show what the phone is called here.
    IDENTIFY = "identify"
    #: End what is left of runs of ours and free the phone's cache.
    CLEAN = "clean"
    #: Look at the settings that a phone on a shelf needs.
    CHECK_SETTINGS = "check_settings"
    #: Look at them, and change those that differ.
    PROVISION = "provision"
    #: Put back what was changed.
    RESTORE_SETTINGS = "restore_settings"


def obstacle(device: DeviceState, *, host_id: HostId, job_id: JobId | None) -> str | None:
    """Return why nothing may be done on a device now, in words; `job_id` runs on it."""
    if not device.session_live:
        return f"the agent on {host_id} is not connected"
    if device.presence is not Presence.ONLINE:
        return f"the phone is {device.presence}"
    if job_id is not None:
        return f"job {job_id} runs on it"
    if device.cleaned_fence < device.fence:
        return "its last run is being cleaned up"
    return "another phone on the same CPU is busy" if device.cpu_busy else None
