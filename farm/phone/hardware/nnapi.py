"""NNAPI drivers of a device, by what it registers, declares and starts."""

import re
from collections.abc import Iterator

from farm.core.devices.device import NnapiDriver
from farm.phone.adb.decoding import complete_lines, whole_number
from farm.phone.identity.properties import Properties

_NAME = r"([A-Za-z0-9][\w.+-]{0,63})"
#: `service list`: `52  android.hardware.neuralnetworks.IDevice/mtk-dsp_shim: [...]`.
_AIDL = re.compile(rf"android\.hardware\.neuralnetworks\.IDevice/{_NAME}", re.ASCII)
#: `lshal`, and the older names of manifests.
_HIDL = re.compile(rf"android\.hardware\.neuralnetworks@(\d+\.\d+)::IDevice/{_NAME}", re.ASCII)
_SKIPPED = "cannot be fetched"
#: One that is not closed goes on to the end: what is behind it was declared in no manifest.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HAL = re.compile(r"<hal\b(?:(?!<hal\b).){0,4000}?</hal>", re.DOTALL)
_TAG = re.compile(r"<(name|version|fqname|instance)>\s*([^<>\s]{1,200})\s*</\1>")
_FQNAME = re.compile(rf"(?:@(\d+\.\d+)::)?IDevice/{_NAME}", re.ASCII)
_PLAIN = re.compile(_NAME, re.ASCII)
_SERVICE = re.compile(r"init\.svc\.(\S*(?:neuralnetworks|nnapi|nnhal)\S*)")
_INTERFACE = "android.hardware.neuralnetworks"


def nnapi_drivers(
    *, service_list: str = "", lshal: str = "", vintf: str = "", properties: Properties | None = None
) -> tuple[NnapiDriver, ...]:
    """Return the drivers by name.

    A registered driver runs; a declared one runs if every NNAPI service of the device does, and is unknown
    where some do. A device that names no driver, but starts services for them, has a driver by the name of
    each service.

    Args:
        service_list: `service list`.
        lshal: `lshal`, both its streams: it reports what is declared and missing.
        vintf: manifests of the vendor, one after another.
        properties: of the device, for the state of its services.
    """
    services = _services(properties or {})
    states = set(services.values())
    of_services = states.pop() if len(states) == 1 else None
    driver_by_name: dict[str, NnapiDriver] = {}
    for driver in (*_declared_drivers(vintf, of_services), *_listed_drivers(service_list), *_hidl(lshal)):
        earlier = driver_by_name.get(driver.name)
        driver_by_name[driver.name] = driver if earlier is None else _merged(earlier, driver)
    if not driver_by_name:
        driver_by_name = {name: NnapiDriver(name=name, running=state) for name, state in services.items()}
    return tuple(driver_by_name[name] for name in sorted(driver_by_name))


def nnapi_feature_level(properties: Properties) -> str | None:
    """Return the level of the NNAPI runtime, which Google updates outside system releases."""
    level = properties.get("persist.device_config.nnapi_native.current_feature_level", "").strip()
    return level if level.isascii() and level.isdigit() else None


def _merged(earlier: NnapiDriver, later: NnapiDriver) -> NnapiDriver:
    """Merge a declared and a registered driver: the highest version, and the more certain state."""
    versions = [version for version in (earlier.version, later.version) if version is not None]
    running = (earlier.running or later.running) if later.running is not None else earlier.running
    return NnapiDriver(name=earlier.name, version=max(versions, key=_order, default=None), running=running)


def _order(version: str) -> tuple[int, ...]:
    return tuple(number for part in version.split(".") if (number := whole_number(part)) is not None)


def _listed_drivers(text: str) -> Iterator[NnapiDriver]:
    for line in complete_lines(text):
        if (match := _AIDL.search(line)) is not None:
            yield NnapiDriver(name=match[1], running=_SKIPPED not in line)


def _hidl(text: str) -> Iterator[NnapiDriver]:
    for line in complete_lines(text):
        if (match := _HIDL.search(line)) is not None:
            yield NnapiDriver(name=match[2], version=match[1], running=_is_served(line, line[match.end() :]))
        else:
            yield from _listed_drivers(line)


def _is_served(line: str, behind: str) -> bool | None:
    """Return whether threads, server and clients exist; `N/A` in all of them is an unused service."""
    columns = behind.split()
    return None if columns and set(columns) == {"N/A"} else _SKIPPED not in line


def _declared_drivers(text: str, running: bool | None) -> Iterator[NnapiDriver]:
    for hal in _HAL.findall(_COMMENT.sub("", text)):
        tags = [(match[1], match[2]) for match in _TAG.finditer(hal)]
        if ("name", _INTERFACE) not in tags:
            continue
        version = next((value for tag, value in reversed(tags) if tag == "version"), None)
        for tag, value in tags:
            match = _FQNAME.fullmatch(value)
            if tag == "fqname" and match is not None:
                yield NnapiDriver(name=match[2], version=match[1] or version, running=running)
            elif tag == "instance" and _PLAIN.fullmatch(value):
                yield NnapiDriver(name=value, version=version, running=running)


def _services(properties: Properties) -> dict[str, bool]:
    matches = ((_SERVICE.fullmatch(name), value.strip()) for name, value in properties.items())
    return {match[1]: value == "running" for match, value in matches if match and value}
