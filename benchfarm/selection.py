"""Devices by selectors, with the rules of a matrix."""

from collections.abc import Sequence

from farm.client.farm_client import FarmClient
from farm.wire.documents.devices import DeviceView


def select_views(client: FarmClient, texts: Sequence[str]) -> list[DeviceView]:
    """Return all devices, or those that fit any of the selectors; retired ones fit none.

    Raises:
        InvalidInput: a text is no selector.
        SelectorEmpty: one of them fits no device.
    """
    # The farm selects: it has all facts, of which the list says some.
    selected = {*client.select_devices(texts)} if texts else None
    return [view for view in client.devices() if selected is None or view.device_id in selected]
