"""Errors blamed on devices."""

from farm.core.errors.base import Blame, FarmError


class DeviceError(FarmError):
    """A phone did not do what phones do."""

    code = "device.error"
    blame = Blame.DEVICE
    transient = True
    default_hint = "`farm device list` shows the phone's presence and health"


class DeviceOffline(DeviceError):
    """The phone is not reachable over adb."""

    code = "device.offline"


class DeviceLost(DeviceError):
    """The phone went away during a run and did not come back in time."""

    code = "device.lost"
    default_hint = "look at its cable and its power; the run on it may be over"


class DeviceRebooted(DeviceError):
    """The phone restarted during a run."""

    code = "device.rebooted"
    default_hint = "heat, a full disk or a driver may be why: `adb shell getprop sys.boot.reason` says"


class AdbdRestarted(DeviceError):
    """The phone's adb daemon restarted during a run and took the run with it."""

    code = "device.adbd_restarted"
    default_hint = "an update, or a run that took all memory, ends it: `adb logcat -b crash` says more"


class DeviceTimeout(DeviceError):
    """The phone did not answer within the overall deadline."""

    code = "device.timeout"


class DeviceUnfit(DeviceError):
    """The device does not have what every run needs (Android 8, sha256sum, shell v2)."""

    code = "device.unfit"
    transient = False


class ControlImpossible(DeviceError):
    """The phone cannot be set as the matrix wants it: no root, no such cores, no such clock."""

    code = "device.control_impossible"
    blame = Blame.USER
    transient = False
    default_hint = "`controls:` of the matrix has what was asked for; leave it out, or choose other devices"


class DeviceProtocol(DeviceError):
    """The adb connection said something that cannot be."""

    code = "device.protocol"


class PushFailed(DeviceError):
    """A file could not be written on the phone."""

    code = "device.push_failed"


class PushCorrupted(DeviceError):
    """A file on the phone does not have the digest of what was pushed."""

    code = "device.push_corrupted"
