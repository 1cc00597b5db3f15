"""Hardware of a device as far as models run on it: cores, GPU, accelerator drivers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cores that are alike and change their clock together. None: the phone does not say."""

    #: Numbers of its cores, ascending.
    cores: tuple[int, ...]
    #: As the kernel names the core: implementer and part (`0x41:0xd05`), or its name where we know it.
    core: str | None = None
    min_hz: int | None = None
    #: What the hardware can do (cpuinfo_max_freq), whatever limits there are now.
    max_hz: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The graphics processor and its driver, which is updated outside system releases on some phones."""

    vendor: str | None = None
    #: `Adreno (TM) 750`, `Mali-G715`.
    renderer: str | None = None
    #: OpenGL ES driver's version in its maker's form: `V@0762.10`, `r38p1`.
    driver: str | None = None
    #: All that the driver says of itself, which tells builds of one version apart.
    driver_text: str | None = None
    #: `1.3.0`, and the driver's own version.
    vulkan: str | None = None
    vulkan_driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NnapiDriver:
    """One NNAPI driver of the phone; its accelerator's name is the part before `-` that logs show."""

    #: As the NNAPI runtime lists it: `google-edgetpu`, `qti-dsp`, `mtk-mdla_shim`.
    name: str
    #: Of the interface or driver, where the phone says it.
    version: str | None = None
    #: Whether its service runs; None where the phone does not say.
    running: bool | None = None
