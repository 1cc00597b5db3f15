"""The error tree: who is to blame, whether trying again helps, and a stable code.

FarmError
├── InvalidInput                 blame user
│   ├── MatrixInvalid            matrix.invalid
│   ├── SelectorEmpty            matrix.selector_empty
│   ├── VariantInvalid           variant.invalid
│   ├── HarnessInvalid           harness.invalid
│   ├── ArtifactMissing          artifact.missing
│   ├── InputTooLarge            input.too_large
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
├── Forbidden                    auth.forbidden
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
│   ├── PushFailed               device.push_failed
│   └── PushCorrupted            device.push_corrupted
├── HostError                    blame host
│   ├── AdbServerDown            host.adb_server_down
│   └── HostDiskFull             host.disk_full
└── FarmFault                    blame farm
    ├── FarmUnreachable          farm.unreachable
    ├── FarmDiskFull             farm.disk_full
    └── FarmBusy                 farm.busy

Retry, health, HTTP status, exit code and outcome follow from these attributes, never from message text.
"""

from farm.core.errors.base import Blame, FarmError
from farm.core.errors.database import BackupDamaged, SchemaMismatch
from farm.core.errors.devices import (
    AdbdRestarted,
    ControlImpossible,
    DeviceError,
    DeviceLost,
    DeviceOffline,
    DeviceProtocol,
    DeviceRebooted,
    DeviceTimeout,
    DeviceUnfit,
    PushCorrupted,
    PushFailed,
)
from farm.core.errors.faults import (
    AdbServerDown,
    FarmBusy,
    FarmDiskFull,
    FarmFault,
    FarmUnreachable,
    HostDiskFull,
    HostError,
)
from farm.core.errors.requests import (
    ArtifactExpired,
    ArtifactMissing,
    AuthError,
    Conflict,
    DigestMismatch,
    Forbidden,
    HarnessInvalid,
    IdempotencyKeyReused,
    InputTooLarge,
    InputTooSlow,
    InvalidInput,
    MatrixInvalid,
    NotFound,
    ReportConflict,
    SelectorEmpty,
    SessionFenced,
    UploadInterrupted,
    VariantInvalid,
    WireVersionUnsupported,
)

__all__ = [
    "AdbServerDown",
    "AdbdRestarted",
    "ArtifactExpired",
    "ArtifactMissing",
    "AuthError",
    "BackupDamaged",
    "Blame",
    "Conflict",
    "ControlImpossible",
    "DeviceError",
    "DeviceLost",
    "DeviceOffline",
    "DeviceProtocol",
    "DeviceRebooted",
    "DeviceTimeout",
    "DeviceUnfit",
    "DigestMismatch",
    "FarmBusy",
    "FarmDiskFull",
    "FarmError",
    "FarmFault",
    "FarmUnreachable",
    "Forbidden",
    "HarnessInvalid",
    "HostDiskFull",
    "HostError",
    "IdempotencyKeyReused",
    "InputTooLarge",
    "InputTooSlow",
    "InvalidInput",
    "MatrixInvalid",
    "NotFound",
    "PushCorrupted",
    "PushFailed",
    "ReportConflict",
    "SchemaMismatch",
    "SelectorEmpty",
    "SessionFenced",
    "UploadInterrupted",
    "VariantInvalid",
    "WireVersionUnsupported",
]
