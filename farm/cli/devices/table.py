"""The phones as a table, with what is to be done about the sick ones."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.devices.state_text import remedy, since_words, state_words
from farm.cli.shell.formatting import phone
from farm.cli.shell.tables import add_row, listing
from farm.wire.documents.devices import DeviceView


def device_table(devices: Sequence[DeviceView]) -> RenderableType:
    """One line a phone, then one line for each that needs somebody."""
    table = listing(names=("device",), words=("phone", "host", "state"), numbers=("since",))
    for device in devices:
        kind = phone(device.device_model, device.soc, virtual=device.virtual)
        add_row(table, device.name, kind, device.host, state_words(device), since_words(device))
    remedies = [line for line in map(remedy, devices) if line is not None]
    return Group(table, Text(""), *map(Text, remedies)) if remedies else table
