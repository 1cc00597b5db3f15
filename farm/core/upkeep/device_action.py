"""Device actions: operator requests to an agent, outside of any job."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, NewType

from farm.core.base.ids import DeviceId, HostId, JobId
from farm.core.devices.device import Blocker, DeviceState, Presence
from farm.core.devices.remediation import MESSAGE_BY_BLOCKER


class DeviceActionKind(StrEnum):
    """The kinds of device action; none happens while a run is on the device."""

    #: Wake the screen and show what the phone is called here.
    IDENTIFY = "identify"
    #: End what is left of runs of ours and free the phone's cache.
    CLEAN = "clean"
    #: Read the settings that an unattended phone needs.
    CHECK_SETTINGS = "check_settings"
    #: Look at them, and change those that differ.
    PROVISION = "provision"
    #: Put back what was changed.
    RESTORE_SETTINGS = "restore_settings"


class DeviceActionEvent(StrEnum):
    """Device action events."""

    #: An operator wants something done on it.
    REQUESTED = "device_action_requested"
    #: It was done.
    DONE = "device_action_done"
    #: It could not be done, or no agent did it in time.
    FAILED = "device_action_failed"


DeviceActionId = NewType("DeviceActionId", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAction:
    """A device action; a finished one has a result or an error."""

    #: With what `farm.wire` adds it is a document of its own: unknown keys are refused, as in all of them.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    device_action_id: DeviceActionId
    device_id: DeviceId
    kind: DeviceActionKind
    requested_by: str
    requested_at: datetime
    finished_at: datetime | None
    #: The result, in words.
    done: str | None
    error: str | None
    freed_bytes: int | None


def obstacle(device: DeviceState, *, host_id: HostId, job_id: JobId | None) -> str | None:
    """Return why nothing may be done on a device now, in words; `job_id` runs on it."""
    if not device.session_live:
        return f"the agent on {host_id} is not connected"
    if device.presence is not Presence.ONLINE:
        return f"the device is {device.presence}"
    if job_id is not None:
        return f"job {job_id} runs on it"
    if device.cleaned_fence < device.fence:
        return "its last run is being cleaned up"
    return MESSAGE_BY_BLOCKER[Blocker.CPU_SHARED] if device.cpu_busy else None
