"""Devices by selectors, with the rules of a matrix."""

from collections.abc import Sequence

from farm.client.farm_client import FarmClient
from farm.core.base.spec_errors import name_hint
from farm.core.devices.device import Admin, DeviceFacts
from farm.core.devices.selector import SELECTOR_KEYS, KnownDevice, Selector, select_devices
from farm.core.errors import InvalidInput
from farm.wire.documents.devices import DeviceView

#: What the list of devices says; for other keys each device is asked for.
_LISTED_KEYS = frozenset({"device", "device_id", "label", "tag", "device_model", "manufacturer", "unit"}) | {
    "android",
    "api_level",
    "abi",
    "host",
    "virtual",
}


def select_views(client: FarmClient, texts: Sequence[str]) -> list[DeviceView]:
    """Return all devices, or those that fit any of the selectors; retired ones fit none.

    Raises:
        InvalidInput: a text is no selector.
        SelectorEmpty: one of them fits no device.
    """
    views = client.devices()
    if not texts:
        return views
    selectors = [parse_selector(text) for text in texts]
    needs_facts = any(set(selector) - _LISTED_KEYS for selector in selectors)
    views = [view for view in views if view.device_model and view.admin is not Admin.RETIRED]
    devices = [_known(view, _facts(client, view) if needs_facts else None) for view in views]
    selected = {device.device_id for device in select_devices(selectors, devices)}
    return [view for view in views if view.device_id in selected]


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


def _facts(client: FarmClient, view: DeviceView) -> DeviceFacts | None:
    return client.device(view.device_id).facts


def _known(view: DeviceView, facts: DeviceFacts | None) -> KnownDevice:
    return KnownDevice(
        device_id=view.device_id,
        host=view.host,
        label=view.label,
        tags=view.tags,
        unit=view.unit,
        facts=facts
        or DeviceFacts(
            serialno=view.serial,
            device_model=view.device_model or "",
            work_root="",
            manufacturer=view.manufacturer,
            android=view.android,
            api_level=view.api_level,
            abis=() if view.abi is None else (view.abi,),
            virtual=view.virtual,
        ),
    )
