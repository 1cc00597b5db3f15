"""What an operator has an agent do on a phone, outside of any job."""

from enum import StrEnum


class DeviceActionKind(StrEnum):
    """What is to be done; never while a run is on the phone."""

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
