"""`farm mcp`: the farm for assistants that speak the Model Context Protocol, on standard input and output."""

from farm.cli.shell.address import connect
from farm.cli.shell.extras import require_module


def mcp() -> None:
    """Serve the farm to an assistant by the Model Context Protocol, on standard input and output.

    Its tools look at devices, matrices, speedups, history and regressions. A submitter's also plan and submit
    matrices, and cancel and rerun those of the caller. Nothing can be deleted.

    Configure it as the command of a server in the assistant; docs/python.md shows how.

    Example: farm mcp
    """
    require_module("mcp")
    from farm.cli.farm.mcp_server import farm_server

    with connect() as farm:
        farm_server(farm).run("stdio")
