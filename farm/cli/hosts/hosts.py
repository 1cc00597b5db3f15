"""`farm hosts`: the machines with phones, and how they are."""

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, show


def hosts(as_json: Json = False) -> None:
    """List the hosts: their agents, their phones, what runs there, and what is wrong.

    Example: farm hosts

    Example: farm host list --json
    """
    from farm.cli.hosts.report import host_table

    with connect() as farm:
        show(farm.hosts(), host_table, as_json=as_json)
