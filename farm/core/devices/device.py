"""One physical phone: what it is, and the independent facts that decide whether it can be given work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from farm.core.base.ids import DeviceId
from farm.core.devices.hardware import Cluster, Gpu, NnapiDriver


class Presence(StrEnum):
    """The state of a device as its agent observes it."""

    #: Answered an end-to-end probe: a nonce over shell v2, and sys.boot_completed=1.
    ONLINE = "online"
    #: adb reaches it, Android is not up yet.
    BOOTING = "booting"
    #: adb lists it and cannot reach it, or the probe failed.
    OFFLINE = "offline"
    #: The device's owner has not accepted this host's key.
    UNAUTHORIZED = "unauthorized"
    #: The operating system does not let the agent open the USB device.
    NO_PERMISSION = "no_permission"
    #: Recovery, sideload, fastboot: up, but not Android.
    WRONG_MODE = "wrong_mode"
    #: adb does not list it.
    ABSENT = "absent"


class Health(StrEnum):
    """The trust in a device for measurements; earned by a check."""

    UNKNOWN = "unknown"
    GOOD = "good"
    SUSPECT = "suspect"
    BAD = "bad"


class Admin(StrEnum):
    """The operator's decision about a device."""

    PENDING = "pending"
    ACTIVE = "active"
    CORDONED = "cordoned"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The facts of a device that hold until its next system build. None: not reported."""

    #: `ro.serialno`: the phone's identity, whatever adb calls its transport.
    serialno: str
    device_model: str
    manufacturer: str | None = None
    #: What it is sold as, where that is not the model.
    market_name: str | None = None
    #: Maker and model of the chip in one, for people and selectors.
    soc: str | None = None
    soc_vendor: str | None = None
    soc_model: str | None = None
    android: str | None = None
    api_level: int | None = None
    #: Preferred ABI first.
    abis: tuple[str, ...] = ()
    build_fingerprint: str | None = None
    #: Of the security patches, as the build says it: `2026-05-05`.
    security_patch: str | None = None
    kernel: str | None = None
    cores: int | None = None
    #: Slowest first; empty where the phone does not say.
    clusters: tuple[Cluster, ...] = ()
    memory_bytes: int | None = None
    storage_bytes: int | None = None
    gpu: Gpu | None = None
    nnapi: tuple[NnapiDriver, ...] = ()
    #: Whether its shell can become root, which some controls need.
    root: bool | None = None
    #: Where each of these facts came from: a property, a file, a rule over several.
    sources: Mapping[str, str] = field(default_factory=dict)
    #: Where the agent may work on the phone: an absolute path.
    work_root: str
    virtual: bool = False
    #: Devices with the same domain share a CPU and never run at the same time; None for a phone. Another one
    #: after each boot of the host.
    cpu_domain: str | None = None

    @property
    def abi(self) -> str | None:
        """Return the ABI of native programs for this device."""
        return self.abis[0] if self.abis else None


class Blocker(StrEnum):
    """The reason why a device gets no work; the first that applies is shown."""

    SESSION_NOT_LIVE = "the host's agent is not connected"
    HOST_DRAINING = "the host is draining and starts no new work"
    NOT_ONLINE = "the phone is not online"
    PENDING = "the phone awaits admission by an operator"
    CORDONED = "the phone is cordoned"
    RESERVED = "the phone is reserved by a person"
    RETIRED = "the phone is retired"
    HEALTH_UNKNOWN = "the phone has not passed its enrolment check yet"
    HEALTH_SUSPECT = "the phone is suspect and waits for a check"
    HEALTH_BAD = "the phone is bad"
    BUSY = "the phone is busy with another job"
    DEVICE_ACTION = "an operator's action on the phone is in progress"
    NOT_CLEANED = "the phone is not cleaned up after its last run"
    CPU_SHARED = "another phone on the same CPU is busy"
    HOST_FULL = "the host has as many runs as it may have at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """All that decides whether a device can be given work."""

    device_id: DeviceId
    session_live: bool
    presence: Presence
    health: Health
    admin: Admin
    busy: bool
    #: The fencing token of the last claim, and the highest one confirmed as cleaned up.
    fence: int
    cleaned_fence: int
    cpu_busy: bool = False
    #: A person has reserved it.
    held: bool = False
    #: A device action is open.
    device_action: bool = False
    #: Its host starts no new work, checks included.
    host_draining: bool = False
    #: Its host has as many runs under way as it may have.
    host_full: bool = False


def blockers(device: DeviceState, *, check: bool) -> list[Blocker]:
    """Return the reasons why a device gets no work; empty means schedulable.

    Args:
        device: its state now.
        check: the work is a health check, which is how a phone earns its health.
    """
    reasons: list[Blocker] = []
    if not device.session_live:
        reasons.append(Blocker.SESSION_NOT_LIVE)
    if device.host_draining:
        reasons.append(Blocker.HOST_DRAINING)
    if device.presence is not Presence.ONLINE:
        reasons.append(Blocker.NOT_ONLINE)
    match device.admin:
        case Admin.PENDING:
            reasons.append(Blocker.PENDING)
        case Admin.CORDONED:
            reasons.append(Blocker.CORDONED)
        case Admin.RETIRED:
            reasons.append(Blocker.RETIRED)
        case Admin.ACTIVE:
            pass
    if device.held:
        reasons.append(Blocker.RESERVED)
    if not check:
        match device.health:
            case Health.UNKNOWN:
                reasons.append(Blocker.HEALTH_UNKNOWN)
            case Health.SUSPECT:
                reasons.append(Blocker.HEALTH_SUSPECT)
            case Health.BAD:
                reasons.append(Blocker.HEALTH_BAD)
            case Health.GOOD:
                pass
    if device.busy:
        reasons.append(Blocker.BUSY)
    if device.device_action:
        reasons.append(Blocker.DEVICE_ACTION)
    if device.cleaned_fence < device.fence:
        reasons.append(Blocker.NOT_CLEANED)
    elif device.cpu_busy and not (device.busy or device.device_action):
        reasons.append(Blocker.CPU_SHARED)
    if device.host_full and not device.busy:
        reasons.append(Blocker.HOST_FULL)
    return reasons
