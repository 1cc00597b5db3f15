"""Which devices of the farm a matrix runs on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from farm.core.device import DeviceFacts
from farm.core.errors import SelectorEmpty
from farm.core.ids import DeviceId, HostId
from farm.core.plan import SettingValue

#: A device must fit every key, by any of the key's values; a selector without keys is all devices.
Selector = Mapping[str, tuple[SettingValue, ...]]

SELECTOR_KEYS = ("device_id", "device_model", "soc", "android", "api_level", "abi", "host", "virtual")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device as matrices see it."""

    device_id: DeviceId
    host: HostId
    facts: DeviceFacts


def selected_devices(selectors: Sequence[Selector], devices: Sequence[KnownDevice]) -> list[KnownDevice]:
    """The devices that fit any of the selectors, in the given order.

    Text is compared without regard to case and may hold shell-style wildcards. What a phone does not say
    fits nothing.

    Raises:
        SelectorEmpty: one of the selectors fits no device, which is more often a slip than meant.
    """
    for selector in selectors:
        if not any(_fits(device, selector) for device in devices):
            raise _selector_empty(selector, devices)
    return [device for device in devices if any(_fits(device, selector) for selector in selectors)]


def selector_text(selector: Selector) -> str:
    """A selector as one would write it: `{soc: Tensor*, virtual: true}`, or `all`."""
    parts = [f"{key}: {' or '.join(map(_text, values))}" for key, values in selector.items()]
    return "{" + ", ".join(parts) + "}" if parts else "all"


def _fits(device: KnownDevice, selector: Selector) -> bool:
    return all(_fits_any(_fact(device, key), values) for key, values in selector.items())


def _fits_any(fact: SettingValue | None, values: Sequence[SettingValue]) -> bool:
    if fact is None:
        return False
    return any(fnmatchcase(_text(fact).casefold(), _text(value).casefold()) for value in values)


def _fact(device: KnownDevice, key: str) -> SettingValue | None:
    facts = device.facts
    fact_by_key: dict[str, SettingValue | None] = {
        "device_id": device.device_id,
        "device_model": facts.device_model,
        "soc": facts.soc,
        "android": facts.android,
        "api_level": facts.api_level,
        "abi": facts.abi,
        "host": device.host,
        "virtual": facts.virtual,
    }
    return fact_by_key[key]


def _text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _selector_empty(selector: Selector, devices: Sequence[KnownDevice]) -> SelectorEmpty:
    message = f"no device fits the selector {selector_text(selector)}"
    if not devices:
        hint = "the farm has no devices: plug in a phone, or start the farm with `farm up --virtual 2`"
        return SelectorEmpty(message, hint=hint)
    present = "; ".join(f"{key}: {_present(key, devices)}" for key in selector)
    return SelectorEmpty(f"{message}; the farm has {present}")


def _present(key: str, devices: Sequence[KnownDevice]) -> str:
    facts = (_fact(device, key) for device in devices)
    texts = sorted({_text(fact) for fact in facts if fact is not None})
    return ", ".join(texts[:12]) + (", ..." if len(texts) > 12 else "") if texts else "nothing"
