"""One physical phone: what it is, and the independent facts that decide whether it can be given work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from farm.core.base.bounds import AtMost, Bytes, CoreCount, Cores, Hertz, LongText, Range, Word
from farm.core.base.ids import DeviceId


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
class Cluster:
    """Cores that are alike and change their clock together. None: the phone does not say."""

    #: Numbers of its cores, ascending.
    cores: Cores
    #: As the kernel names the core: implementer and part (`0x41:0xd05`), or its name where we know it.
    core: Word | None = None
    min_hz: Hertz | None = None
    #: The limit of the hardware (cpuinfo_max_freq), whatever limits there are now.
    max_hz: Hertz | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The graphics processor and its driver, which is updated outside system releases on some phones."""

    vendor: Word | None = None
    #: `Adreno (TM) 750`, `Mali-G715`.
    renderer: Word | None = None
    #: OpenGL ES driver's version in its maker's form: `V@0762.10`, `r38p1`.
    driver: Word | None = None
    #: All that the driver says of itself, which tells builds of one version apart.
    driver_text: LongText | None = None
    #: `1.3.0`, and the driver's own version.
    vulkan: Word | None = None
    vulkan_driver: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NnapiDriver:
    """One NNAPI driver of the phone; its accelerator's name is the part before `-` that logs show."""

    #: As the NNAPI runtime lists it: `google-edgetpu`, `qti-dsp`, `mtk-mdla_shim`.
    name: Word
    #: Of the interface or driver, where the phone says it.
    version: Word | None = None
    #: True if its service runs; None where the phone does not say.
    running: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The facts of a device that hold until its next system build. None: not reported."""

    #: `ro.serialno`: the phone's identity, whatever adb calls its transport.
    serialno: Word
    device_model: Word
    manufacturer: Word | None = None
    #: The name under which it is sold, where that is not the model.
    market_name: Word | None = None
    #: Maker and model of the chip in one, for people and selectors.
    soc: Word | None = None
    soc_vendor: Word | None = None
    soc_model: Word | None = None
    android: Word | None = None
    api_level: Annotated[int, Range(0, 100_000)] | None = None
    #: Preferred ABI first.
    abis: Annotated[tuple[Word, ...], AtMost(16)] = ()
    build_fingerprint: Word | None = None
    #: Of the security patches, as the build says it: `2026-05-05`.
    security_patch: Word | None = None
    #: The release: `6.1.75-android14-11`.
    kernel: Word | None = None
    #: The number and the time of the kernel's build: `#1 SMP PREEMPT Mon Jan 19 02:06:09 UTC 2026`.
    kernel_version: Word | None = None
    #: Of the interface to the thermal sensors: `2.0`, `AIDL 3`.
    thermal_hal: Word | None = None
    cores: CoreCount | None = None
    #: Slowest first; empty where the phone does not say.
    clusters: Annotated[tuple[Cluster, ...], AtMost(64)] = ()
    memory_bytes: Bytes | None = None
    storage_bytes: Bytes | None = None
    gpu: Gpu | None = None
    nnapi: Annotated[tuple[NnapiDriver, ...], AtMost(64)] = ()
    #: True if its shell can become root, which some controls need.
    root: bool | None = None
    #: The source of each of these facts: a property, a file, a rule over several.
    sources: Annotated[Mapping[Word, Word], AtMost(64)] = field(default_factory=dict)
    #: The agent's folder on the phone: an absolute path.
    work_root: Word
    virtual: bool = False
    #: Devices with the same domain share a CPU and never run at the same time; None for a phone. Another one
    #: after each boot of the host.
    cpu_domain: Word | None = None

    @property
    def abi(self) -> str | None:
        """Return the ABI of native programs for this device."""
        return self.abis[0] if self.abis else None


class Blocker(StrEnum):
    """The reason why a device gets no work, as a code; the first that applies is shown."""

    SESSION_NOT_LIVE = "session_not_live"
    HOST_DRAINING = "host_draining"
    NOT_ONLINE = "not_online"
    PENDING = "pending"
    CORDONED = "cordoned"
    RESERVED = "reserved"
    RETIRED = "retired"
    HEALTH_UNKNOWN = "health_unknown"
    HEALTH_SUSPECT = "health_suspect"
    HEALTH_BAD = "health_bad"
    BUSY = "busy"
    DEVICE_ACTION = "device_action"
    NOT_CLEANED = "not_cleaned"
    CPU_SHARED = "cpu_shared"
    HOST_FULL = "host_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """Return the state that decides whether a device can be given work."""

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
    reserved: bool = False
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
    is_clean = device.cleaned_fence >= device.fence
    applies = {
        Blocker.SESSION_NOT_LIVE: not device.session_live,
        Blocker.HOST_DRAINING: device.host_draining,
        Blocker.NOT_ONLINE: device.presence is not Presence.ONLINE,
        Blocker.PENDING: device.admin is Admin.PENDING,
        Blocker.CORDONED: device.admin is Admin.CORDONED,
        Blocker.RETIRED: device.admin is Admin.RETIRED,
        Blocker.RESERVED: device.reserved,
        Blocker.HEALTH_UNKNOWN: device.health is Health.UNKNOWN and not check,
        Blocker.HEALTH_SUSPECT: device.health is Health.SUSPECT and not check,
        Blocker.HEALTH_BAD: device.health is Health.BAD and not check,
        Blocker.BUSY: device.busy,
        Blocker.DEVICE_ACTION: device.device_action,
        Blocker.NOT_CLEANED: not is_clean,
        Blocker.CPU_SHARED: is_clean and device.cpu_busy and not (device.busy or device.device_action),
        Blocker.HOST_FULL: device.host_full and not device.busy,
    }
    return [blocker for blocker, is_so in applies.items() if is_so]
