"""Facts in a device's properties, with the property of each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from farm.phone.adb.decoding import whole_number
from farm.phone.identity.properties import Properties

#: ro.product.model is missing where the dump is cut, or where vendors fill only the properties of their own
#: partitions, from which it is made (ro.product.property_source_order): the device's maker goes before its
#: board's.
_PARTITIONS = ("", "odm.", "vendor.", "product.", "system.", "system_ext.")
#: Vendors write market names into properties of their own.
_MARKET_NAMES = (
    *("ro.product.marketname", "ro.product.vendor.marketname", "ro.product.odm.marketname"),
    *("ro.product.system.marketname", "ro.vendor.product.marketname", "ro.product.honor.marketname"),
    *("ro.vendor.oplus.market.enname", "ro.vendor.oplus.market.name", "ro.oplus.market.name"),
    *("ro.product.oplus.market.name", "ro.oppo.market.enname", "ro.oppo.market.name"),
    *("ro.oneplus.market.name", "ro.display.series", "ro.config.marketing_name", "ro.vivo.market.name"),
    *("ro.vendor.vivo.market.name", "ro.semc.product.name", "ro.asus.product.mkt_name"),
    *("ro.vendor.asus.product.mkt_name", "ro.product.nickname", "ro.vendor.product.ztename"),
    *("ro.vendor.product.display", "ro.product.en.display", "ro.zuk.product.market", "ro.product.display"),
    *("ro.lge.petname", "ro.boot.vendor.lge.petname", "ro.product.product.tran.device.name.default"),
    *("ro.product.tran.device.name.default",),
)
_NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "device_model": [f"ro.product.{partition}model" for partition in _PARTITIONS],
        "manufacturer": [f"ro.product.{partition}manufacturer" for partition in _PARTITIONS],
        "android": ["ro.build.version.release", "ro.system.build.version.release"],
        "api_level": ["ro.build.version.sdk", "ro.system.build.version.sdk"],
        #: It changes with every system update.
        "build_fingerprint": ["ro.build.fingerprint", "ro.system.build.fingerprint"],
        "security_patch": ["ro.build.version.security_patch"],
        #: The device's own, which adb shows for USB transports only.
        "serialno": ["ro.serialno", "ro.boot.serialno"],
        #: The vendor's name of the OpenGL ES driver: `adreno`, `mali`, `meow`.
        "egl": ["ro.hardware.egl"],
        #: That a virtual device shares.
        "cpu_domain": ["ro.benchfarm.cpu_domain"],
    }
)
#: android.os.Build.UNKNOWN, for a value that was not filled in.
_UNKNOWN = "unknown"
_ABI_LISTS = ("ro.product.cpu.abilist", "ro.system.product.cpu.abilist", "ro.vendor.product.cpu.abilist")
_ABI_BY_MACHINE = {
    "aarch64": "arm64-v8a",
    "arm64": "arm64-v8a",
    "armv8l": "armeabi-v7a",
    "armv7l": "armeabi-v7a",
    "i686": "x86",
    "i386": "x86",
}


def text_fact(properties: Properties, name: str) -> str | None:
    """Return the value of the first property that has the fact; None where the device does not report it."""
    return _first(properties, _NAMES[name])


def market_name(properties: Properties) -> str | None:
    """Return the market name, where that is not the model."""
    return (
        _first(properties, _marketing_properties(properties))
        if text_fact(properties, "device_model") is not None
        else None
    )


def api_level(properties: Properties) -> int | None:
    """Return the SDK version, e.g. 34."""
    return whole_number(_first(properties, _NAMES["api_level"]) or "")


def abis(properties: Properties) -> tuple[str, ...]:
    """Return the ABIs, the preferred one first; empty when the device does not report them."""
    listed = _first(properties, _ABI_LISTS)
    single = [properties.get("ro.product.cpu.abi", ""), properties.get("ro.product.cpu.abi2", "")]
    names = listed.split(",") if listed else single
    return tuple(name.strip() for name in names if name.strip())


def is_virtual(properties: Properties) -> bool:
    """Return whether this is one of our virtual devices."""
    return properties.get("ro.benchfarm.virtual") == "1"


def abi_of_machine(machine: str) -> str | None:
    """Return Android's name for the machine of `uname -m`."""
    name = machine.strip()
    return _ABI_BY_MACHINE.get(name, name) or None


def fact_source(properties: Properties, fact: str) -> str | None:
    """Return the property that holds a fact; None for a fact that no property holds."""
    match fact:
        case "abis":
            names: Sequence[str] = _ABI_LISTS
        case "market_name":
            names = _marketing_properties(properties)
        case _:
            names = _NAMES.get(fact, ())
    return next((name for name in names if properties.get(name, "").strip() not in ("", _UNKNOWN)), None)


def _marketing_properties(properties: Properties) -> list[str]:
    """Return the properties that may hold the market name, without those that repeat the model."""
    model = (text_fact(properties, "device_model") or "").casefold()
    return [name for name in _MARKET_NAMES if properties.get(name, "").strip().casefold() != model]


def _first(properties: Properties, names: Sequence[str]) -> str | None:
    values = (properties.get(name, "").strip() for name in names)
    return next((value for value in values if value and value != _UNKNOWN), None)
