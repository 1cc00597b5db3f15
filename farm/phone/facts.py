"""What a phone's properties say it is."""

from collections.abc import Sequence

from farm.phone.properties import Properties
from farm.phone.text import whole_number

#: ro.product.model is missing where the dump is cut, or where a vendor fills its own partition's only.
_PARTITIONS = ("", "vendor.", "odm.", "product.", "system.", "system_ext.")
#: Newest first. ro.soc.* came with Android 12; ro.chipname is Samsung's, where the platform of every
#: Exynos up to the S9 says exynos5; ro.hardware may be the chip's vendor (qcom) or the phone's code name.
_SOC_FALLBACKS = ("ro.chipname", "ro.hardware.chipname", "ro.board.platform", "ro.hardware")
_ABI_BY_MACHINE = {
    "aarch64": "arm64-v8a",
    "arm64": "arm64-v8a",
    "armv8l": "armeabi-v7a",
    "armv7l": "armeabi-v7a",
    "i686": "x86",
    "i386": "x86",
}


def device_model(properties: Properties) -> str | None:
    """The model as its maker calls it, e.g. `Pixel 8`."""
    return _first(properties, [f"ro.product.{partition}model" for partition in _PARTITIONS])


def manufacturer(properties: Properties) -> str | None:
    """Who made the phone."""
    return _first(properties, [f"ro.product.{partition}manufacturer" for partition in _PARTITIONS])


def soc(properties: Properties) -> str | None:
    """Maker and model of the chip; its platform's name where the phone says no more."""
    model = _first(properties, ["ro.soc.model"])
    if model is None:
        return _first(properties, _SOC_FALLBACKS)
    maker = _first(properties, ["ro.soc.manufacturer"])
    return model if maker is None or model.startswith(maker) else f"{maker} {model}"


def android_release(properties: Properties) -> str | None:
    """Android's version, e.g. `8.1.0`."""
    return _first(properties, ["ro.build.version.release"])


def api_level(properties: Properties) -> int | None:
    """The SDK version, e.g. 34."""
    return whole_number(properties.get("ro.build.version.sdk", ""))


def abis(properties: Properties) -> tuple[str, ...]:
    """Preferred ABI first; empty when the phone does not say."""
    listed = _first(properties, ["ro.product.cpu.abilist", "ro.system.product.cpu.abilist"])
    single = [properties.get("ro.product.cpu.abi", ""), properties.get("ro.product.cpu.abi2", "")]
    names = listed.split(",") if listed else single
    return tuple(name.strip() for name in names if name.strip())


def build_fingerprint(properties: Properties) -> str | None:
    """What changes with every system update."""
    return _first(properties, ["ro.build.fingerprint", "ro.system.build.fingerprint"])


def serialno(properties: Properties) -> str | None:
    """The phone's own serial number, which adb shows for USB transports only."""
    return _first(properties, ["ro.serialno", "ro.boot.serialno"])


def is_virtual(properties: Properties) -> bool:
    """Whether this is one of our virtual phones."""
    return properties.get("ro.benchfarm.virtual") == "1"


def cpu_domain(properties: Properties) -> str | None:
    """What a virtual phone shares its CPU with."""
    return _first(properties, ["ro.benchfarm.cpu_domain"])


def abi_of_machine(machine: str) -> str | None:
    """Android's name for what `uname -m` says."""
    name = machine.strip()
    return _ABI_BY_MACHINE.get(name, name) or None


def _first(properties: Properties, names: Sequence[str]) -> str | None:
    values = (properties.get(name, "").strip() for name in names)
    return next((value for value in values if value), None)
