"""`farm harness`: the benchmark programs the farm can put on phones."""

import typer

from farm.cli.address import connect
from farm.cli.output import Json, show

app = typer.Typer(no_args_is_help=True, help="Benchmark programs.")


@app.command("list")
def list_harnesses(as_json: Json = False) -> None:
    """List the registered programs, one for each ABI.

    Example: farm harness list
    """
    from farm.cli.render import harness_table

    with connect() as farm:
        show(farm.harnesses(), harness_table, as_json=as_json)
