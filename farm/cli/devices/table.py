"""The table of `farm device list`."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.devices.state_text import device_state_text, find_remedy, since_text
from farm.cli.shell.formatting import device_kind
from farm.cli.shell.tables import add_row, new_table
from farm.wire.documents.devices import DeviceView


def device_table(devices: Sequence[DeviceView]) -> RenderableType:
    """Return one line for each device, then one line for each that needs an operator."""
    table = new_table(names=("device",), words=("model", "host", "state"), numbers=("since",))
    for device in devices:
        kind = device_kind(device.device_model, device.soc, virtual=device.virtual)
        add_row(table, device.name, kind, device.host, device_state_text(device), since_text(device))
    remedies = [line for line in map(find_remedy, devices) if line is not None]
    return Group(table, Text(""), *map(Text, remedies)) if remedies else table
