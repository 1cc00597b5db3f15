"""`farm devices`: the phones, their state, and why one gets no work."""

from farm.cli.address import connect
from farm.cli.output import Json, show


def devices(as_json: Json = False) -> None:
    """List the phones: what they are, whether they can be used, what they do now.

    Example: farm devices --json
    """
    from farm.cli.render import device_table

    with connect() as farm:
        show(farm.devices(), device_table, as_json=as_json)
