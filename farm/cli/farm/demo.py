"""`farm demo`: run one matrix on virtual devices, from an empty folder to a speedup table."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.address import data_dir
from farm.cli.shell.output import print_json, print_notice


def demo(
    data: Annotated[
        Path | None, typer.Option(help="The data folder; default: FARM_DATA_DIR, else ./farm-data.")
    ] = None,
    matrix: Annotated[
        Path | None, typer.Option(help="The matrix to run; default: examples/demo.yaml.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the speedups as one JSON document.")] = False,
) -> None:
    """Run a small matrix on two virtual devices and print the speedups of the variants.

    It uses the farm that runs in the data folder, or starts one and stops it again. A second run reuses the
    built files; if another demo is running, it waits for it.

    Example: farm demo
    """
    from farm.cli.farm.demo_lock import demo_lock
    from farm.cli.farm.demo_steps import demo_matrix, run_demo
    from farm.cli.results.speedups import print_speedups
    from farm.cli.shell.next_steps import demo_commands

    folder = data or data_dir()
    with demo_lock(folder, print_notice):
        result = run_demo(folder, matrix or demo_matrix())
    if as_json:
        print_json([view.model_dump(mode="json") for view in result.speedups])
    else:
        print_speedups(result.speedups)
    print_notice(demo_commands(folder, result.matrix_id, keeps_farm_running=result.keeps_farm_running))
    raise typer.Exit(result.exit_code)
