"""The error tree: who is to blame, whether trying again helps, and a stable code.

FarmError
├── InvalidInput                 blame user
│   ├── MatrixInvalid            matrix.invalid
│   ├── SelectorEmpty            matrix.selector_empty
│   ├── VariantInvalid           variant.invalid
│   ├── HarnessInvalid           harness.invalid
│   ├── ArtifactMissing          artifact.missing
│   ├── InputTooLarge            input.too_large
│   │   └── QuotaReached         quota.reached
│   ├── InputTooSlow             input.too_slow
│   └── WireVersionUnsupported   wire.version
├── DigestMismatch               artifact.digest_mismatch
├── NotFound                     not_found
│   └── ArtifactExpired          artifact.expired
├── Conflict                     conflict
│   ├── IdempotencyKeyReused     request.reused
│   ├── ReportConflict           report.conflict
│   ├── UploadInterrupted        artifact.upload_interrupted
│   └── SessionFenced            session.fenced
├── AuthError                    auth.invalid
│   └── TokenExpired             auth.expired
├── Forbidden                    auth.forbidden
├── LimitReached                 limit.reached
├── SchemaMismatch               farm.schema_mismatch
├── BackupDamaged                farm.backup_damaged
├── DeviceError                  blame device
│   ├── DeviceOffline            device.offline
│   ├── DeviceLost               device.lost
│   ├── DeviceRebooted           device.rebooted
│   ├── AdbdRestarted            device.adbd_restarted
│   ├── DeviceTimeout            device.timeout
│   ├── DeviceUnfit              device.unfit
│   ├── ControlImpossible        device.control_impossible
│   ├── DeviceProtocol           device.protocol
│   ├── DeviceImplausible        device.implausible
│   ├── PushFailed               device.push_failed
│   └── PushCorrupted            device.push_corrupted
├── HostError                    blame host
│   ├── AdbServerDown            host.adb_server_down
│   └── HostDiskFull             host.disk_full
│       └── HostDiskFailed       host.disk_failed
└── FarmFault                    blame farm
    ├── FarmUnreachable          farm.unreachable
    ├── FarmDiskFull             farm.disk_full
    └── FarmBusy                 farm.busy

Retry, health, HTTP status, exit code and outcome follow from these attributes, never from message text.
"""

from collections.abc import Sequence
from typing import ClassVar

from farm.core.errors.blame import EXIT_CODES as EXIT_CODES
from farm.core.errors.blame import Blame as Blame


class FarmError(Exception):
    """A failure with a name: its `code` is stable and documented, its `hint` says what to do next."""

    code: ClassVar[str] = "farm.error"
    blame: ClassVar[Blame] = Blame.FARM
    transient: ClassVar[bool] = False
    default_hint: ClassVar[str] = "look at the farm's log, then report this"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint or self.default_hint
        self.add_note(f"hint: {self.hint}")


class InvalidInput(FarmError):
    """The request is not valid as written."""

    code = "input.invalid"
    blame = Blame.USER
    default_hint = "correct the input and try again"
    #: Position in the request: keys and list positions, from its root.
    places: Sequence[tuple[str | int, ...]] = ()


class MatrixInvalid(InvalidInput):
    """A matrix names something that does not exist or cannot be."""

    code = "matrix.invalid"
    default_hint = "docs/matrix.md explains every key of a matrix"


class SelectorEmpty(InvalidInput):
    """A device selector matches no device of the farm."""

    code = "matrix.selector_empty"
    places = (("devices",),)
    default_hint = "`farm device list` lists what can be selected"


class VariantInvalid(InvalidInput):
    """A model file is not what it claims to be."""

    code = "variant.invalid"
    default_hint = "`farm variant build MODEL` makes files the farm knows"


class HarnessInvalid(InvalidInput):
    """A harness's program or definition is not what it should be."""

    code = "harness.invalid"
    default_hint = "docs/harnesses.md explains programs and definitions"


class ArtifactMissing(InvalidInput):
    """A digest is referred to whose bytes the farm does not have."""

    code = "artifact.missing"
    default_hint = "upload the file first: PUT /api/v1/blobs/{digest}"


class InputTooLarge(InvalidInput):
    """More was sent than the farm takes at once."""

    code = "input.too_large"
    default_hint = "send less"


class QuotaReached(InputTooLarge):
    """A caller's files would take more of the farm's disk than one caller may have; waiting does not help."""

    code = "quota.reached"
    default_hint = "have an operator of the farm raise the quota: FARM_STORED_BYTES_PER_PERSON"


class InputTooSlow(InvalidInput):
    """The body of the request did not arrive in time."""

    code = "input.too_slow"
    transient = True
    default_hint = "the line is slow or broken: try again"


class WireVersionUnsupported(InvalidInput):
    """An agent speaks a version of the protocol that this farm does not."""

    code = "wire.version"
    default_hint = "run agent and farm of the same release, or of neighbouring ones"


class DigestMismatch(FarmError):
    """Bytes do not have the digest they were announced with."""

    code = "artifact.digest_mismatch"
    blame = Blame.USER
    default_hint = "the file changed or was damaged on its way: send it again"


class NotFound(FarmError):
    """Nothing has that name."""

    code = "not_found"
    blame = Blame.USER
    default_hint = "list what there is, then use a name from the list"


class ArtifactExpired(NotFound):
    """The farm deleted these bytes, to free space or because a user removed the file."""

    code = "artifact.expired"
    default_hint = "upload the file again: `farm variant build`, `farm variant add` or `farm harness add`"


class Conflict(FarmError):
    """The request contradicts what is already recorded."""

    code = "conflict"
    blame = Blame.USER
    default_hint = "look at the present state, then decide again"


class IdempotencyKeyReused(Conflict):
    """The key of a submission was used for another one."""

    code = "request.reused"
    default_hint = "take a new key for a new submission; only the very same request may be sent again"


class ReportConflict(Conflict):
    """An attempt was already reported with other evidence."""

    code = "report.conflict"
    default_hint = "the first report counts; this one may be discarded"


class UploadInterrupted(Conflict):
    """An upload broke off, does not go on where it ended, or meets another one of the same bytes."""

    code = "artifact.upload_interrupted"
    transient = True
    default_hint = "ask with HEAD how much arrived, then send the rest"


class SessionFenced(Conflict):
    """A newer session of the same host exists, or this one was closed."""

    code = "session.fenced"
    blame = Blame.HOST
    default_hint = "open a new session"


class AuthError(FarmError):
    """The credential is missing, unknown, or not for this."""

    code = "auth.invalid"
    blame = Blame.USER
    default_hint = "enroll the agent again, or use the token you were given"


class TokenExpired(AuthError):
    """The access token was valid until some time ago."""

    code = "auth.expired"
    default_hint = "ask an admin of this farm for a new token; `farm token rotate` replaces one in time"


class Forbidden(FarmError):
    """The caller is known, and may not do this."""

    code = "auth.forbidden"
    blame = Blame.USER
    default_hint = "ask who runs the farm"


class LimitReached(FarmError):
    """A caller asks for more calls in a minute, or more unfinished jobs, than one caller may have."""

    code = "limit.reached"
    blame = Blame.USER
    transient = True
    default_hint = "have an operator of the farm raise the limit"
    wait_s = 1.0  # Until the caller may ask again.


class SchemaMismatch(FarmError):
    """The database's schema is not the one this release works with."""

    code = "farm.schema_mismatch"
    default_hint = "`farm admin migrate` brings an older database up to date"


class BackupDamaged(FarmError):
    """A backup is not whole, or is not what its manifest says."""

    code = "farm.backup_damaged"
    default_hint = "restore another backup; this one cannot be trusted"


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
    """The adb connection returned an impossible answer."""

    code = "device.protocol"


class DeviceImplausible(DeviceError):
    """The phone reported what no phone can mean."""

    code = "device.implausible"
    default_hint = "a run may have written into the work folder: `farm device show` has what ran there"


class PushFailed(DeviceError):
    """A file could not be written on the phone."""

    code = "device.push_failed"


class PushCorrupted(DeviceError):
    """A file on the phone does not have the digest of what was pushed."""

    code = "device.push_corrupted"


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


class HostDiskFailed(HostDiskFull):
    """The host's disk takes no writes at all: it is broken, or mounted read-only."""

    code = "host.disk_failed"
    default_hint = "see the kernel's log on the host (dmesg); the agent goes on once it can write again"


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
    default_hint = "try again in a moment"
