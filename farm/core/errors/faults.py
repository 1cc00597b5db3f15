"""Errors of hosts and of the farm itself."""

from farm.core.errors.base import Blame, FarmError


class HostError(FarmError):
    """The host the devices are attached to has a fault."""

    code = "host.error"
    blame = Blame.HOST
    transient = True
    default_hint = "look at the agent's log on that host"


class AdbServerDown(HostError):
    """Our adb server does not answer."""

    code = "host.adb_server_down"


class HostDiskFull(HostError):
    """Nothing more can be written on the host."""

    code = "host.disk_full"
    default_hint = "free space on the host's data folder"


class FarmFault(FarmError):
    """The farm itself has a fault."""

    code = "farm.fault"
    transient = True


class FarmUnreachable(FarmFault):
    """No farm answers at the address."""

    code = "farm.unreachable"
    default_hint = "start one with `farm up`, or set FARM_URL"


class FarmDiskFull(FarmFault):
    """The farm's disk has no room for more."""

    code = "farm.disk_full"
    default_hint = "`farm storage show` says what takes the room; FARM_BLOBS_LIMIT_BYTES sets a limit to it"


class FarmBusy(FarmFault):
    """The farm's database is locked or full."""

    code = "farm.busy"
    default_hint = "it is retried automatically"
