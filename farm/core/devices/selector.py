"""Selection of the devices that a matrix runs on."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from farm.core.base.ids import DeviceId, HostId
from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import closest_name, name_hint
from farm.core.devices.device import DeviceFacts
from farm.core.errors import InvalidInput, SelectorEmpty

#: A device must fit every key, by any of the key's values; a selector without keys is all devices.
Selector = Mapping[str, tuple[SettingValue, ...]]

_NAMES_SHOWN = 12
#: Only where a phone has a whole number: a unit, an API level.
_COMPARISON = re.compile(r"\s*(>=|<=|>|<)\s*(\d{1,9})\s*")
#: `Qualcomm SM8750 (Snapdragon 8 Elite)`.
_SOLD_AS = re.compile(r"[^(]*\((.+)\)$")
_COMPARE: Mapping[str, Callable[[int, int], bool]] = MappingProxyType(
    {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device as matrices see it."""

    device_id: DeviceId
    host: HostId
    facts: DeviceFacts
    #: The operator's name for it.
    label: str | None = None
    tags: tuple[str, ...] = ()
    #: Its number among the phones of its device model.
    unit: int | None = None


def parse_selector(text: str) -> Selector:
    """Parse `soc:SM8* android:>=14`; text without a key of a matrix is the name of a device.

    Raises:
        InvalidInput: there is no such key.
    """
    if ":" not in text:
        return {"device": (text,)}
    selector: dict[str, tuple[str, ...]] = {}
    for part in text.split():
        key, colon, value = part.partition(":")
        if not colon and selector:
            # `label:Pixel 8`: a blank within a value.
            last = next(reversed(selector))
            selector[last] = (f"{selector[last][0]} {part}",)
            continue
        if key not in SELECTOR_KEYS:
            hint = name_hint(key, SELECTOR_KEYS)
            raise InvalidInput(f"devices have no {key!r}", hint=hint)
        selector[key] = (value,)
    return selector


def select_devices(selectors: Sequence[Selector], devices: Sequence[KnownDevice]) -> list[KnownDevice]:
    """Return the devices that match any of the selectors, in the given order.

    Text is compared without regard to case and may hold shell-style wildcards; a whole number may be compared
    to with `>=29`. What a phone does not say fits nothing.

    Raises:
        SelectorEmpty: one of the selectors fits no device, which is more often a slip than meant.
    """
    for selector in selectors:
        if not any(fits(device, selector) for device in devices):
            raise _selector_empty(selector, devices)
    return [device for device in devices if any(fits(device, selector) for selector in selectors)]


def selector_text(selector: Selector) -> str:
    """Format a selector as a user would write it: `{soc: Tensor*, virtual: true}`, or `all`."""
    parts = [f"{key}: {' or '.join(map(_text, values))}" for key, values in selector.items()]
    return "{" + ", ".join(parts) + "}" if parts else "all"


def closest_mismatch(device: KnownDevice, selectors: Sequence[Selector]) -> str:
    """Return why a device matches no selector: the key of the closest selector that it fails."""
    failed = [
        [key for key in selector if not _fits_key(device, key, selector[key])] for selector in selectors
    ]
    key = min(failed, key=len)[0]
    facts = ", ".join(map(_text, _facts(device, key)))
    return f"its {key} is {facts}" if facts else f"it has no {key}"


def fits(device: KnownDevice, selector: Selector) -> bool:
    """Tell whether a device fits every key of a selector."""
    return all(_fits_key(device, key, values) for key, values in selector.items())


def _fits_key(device: KnownDevice, key: str, values: Sequence[SettingValue]) -> bool:
    return any(_matches(fact, value) for fact in _facts(device, key) for value in values)


def _matches(fact: SettingValue, value: SettingValue) -> bool:
    compared = _COMPARISON.fullmatch(value) if isinstance(value, str) else None
    if compared and type(fact) is int:
        return _COMPARE[compared[1]](fact, int(compared[2]))
    return fnmatchcase(_text(fact).casefold(), _text(value).casefold())


def _facts(device: KnownDevice, key: str) -> list[SettingValue]:
    """Return the values of a device for a key, possibly several; none where it reports nothing."""
    return [fact for fact in _FACTS_BY_KEY[key](device, device.facts) if fact is not None]


def _chip_names(facts: DeviceFacts) -> list[str]:
    """Return the names of a chip: its part number, and the name it is sold under."""
    sold_as = _SOLD_AS.match(facts.soc or "")
    return [name for name in (facts.soc_model, sold_as[1] if sold_as else None) if name is not None]


_FactsOfKey = Callable[[KnownDevice, DeviceFacts], Sequence[SettingValue | None]]
_FACTS_BY_KEY: Mapping[str, _FactsOfKey] = MappingProxyType(
    {
        # Whatever one would call a phone: its id, its label, or its model.
        "device": lambda device, facts: (device.device_id, device.label, facts.device_model),
        "device_id": lambda device, _: (device.device_id,),
        "label": lambda device, _: (device.label,),
        "tag": lambda device, _: device.tags,
        "device_model": lambda _, facts: (facts.device_model,),
        "manufacturer": lambda _, facts: (facts.manufacturer,),
        "market_name": lambda _, facts: (facts.market_name,),
        "unit": lambda device, _: (device.unit,),
        "soc": lambda _, facts: (facts.soc, *_chip_names(facts)),
        "soc_vendor": lambda _, facts: (facts.soc_vendor,),
        "soc_model": lambda _, facts: (facts.soc_model,),
        "gpu": lambda _, facts: (facts.gpu.renderer if facts.gpu else None,),
        "nnapi": lambda _, facts: tuple(driver.name for driver in facts.nnapi),
        "root": lambda _, facts: (facts.root,),
        "android": lambda _, facts: (facts.android,),
        "api_level": lambda _, facts: (facts.api_level,),
        "abi": lambda _, facts: (facts.abi,),
        "host": lambda device, _: (device.host,),
        "virtual": lambda _, facts: (facts.virtual,),
    }
)
SELECTOR_KEYS = tuple(_FACTS_BY_KEY)


def _text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _selector_empty(selector: Selector, devices: Sequence[KnownDevice]) -> SelectorEmpty:
    message = f"no device fits the selector {selector_text(selector)}"
    if not devices:
        hint = "the farm has no devices: plug in a phone, or start the farm with `farm up --virtual 2`"
        return SelectorEmpty(message, hint=hint)
    present = "; ".join(f"{key}: {_available_text(key, devices)}" for key in selector)
    hints = "; ".join(_hints(selector, devices))
    return SelectorEmpty(f"{message}; the farm has {present}", hint=hints or None)


def _hints(selector: Selector, devices: Sequence[KnownDevice]) -> Iterator[str]:
    """Yield the values that were probably meant by keys that no device matches."""
    idle = [
        key
        for key, values in selector.items()
        if not any(_fits_key(device, key, values) for device in devices)
    ]
    if not idle:
        yield "each of these fits some device, and all together fit none"
    compared = [value for key in idle for value in selector[key] if _COMPARISON.fullmatch(_text(value))]
    if compared and not {"api_level", "unit"} & {*idle}:
        yield f"`{compared[0]}` compares whole numbers: api_level and unit"
    for key in idle:
        close = [closest_name(_text(value), _known_values(key, devices)) for value in selector[key]]
        yield from (f"did you mean `{key}: {name}`?" for name in dict.fromkeys(close) if name)


def _available_text(key: str, devices: Sequence[KnownDevice]) -> str:
    texts = _known_values(key, devices)
    return ", ".join(texts[:_NAMES_SHOWN]) + (", ..." if len(texts) > _NAMES_SHOWN else "") or "nothing"


def _known_values(key: str, devices: Sequence[KnownDevice]) -> list[str]:
    facts = {fact for device in devices for fact in _facts(device, key)}
    numbers = sorted(fact for fact in facts if type(fact) is int)
    return [*map(str, numbers), *sorted(_text(fact) for fact in facts if type(fact) is not int)]
