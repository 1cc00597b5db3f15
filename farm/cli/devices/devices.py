"""`farm devices`: the phones, their state, and why one gets no work."""

from farm.cli.events.alarms import warn_of_alarms
from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, show


def devices(as_json: Json = False) -> None:
    """List the phones: what they are, what they do now, and what to do about the sick ones.

    Example: farm devices

    Example: farm device list --json
    """
    from farm.cli.devices.table import device_table

    with connect() as farm:
        show(farm.devices(), device_table, as_json=as_json)
        if not as_json:
            warn_of_alarms(farm)
