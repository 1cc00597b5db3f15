"""`farm explain`: show the evidence of one measurement or one speedup."""

from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json
from farm.core.base.ids import CellId, JobId

app = typer.Typer(no_args_is_help=True, help="Explain: show the evidence of one measurement or one speedup.")


@app.command("cell")
def cell_command(
    cell_id: Annotated[int, typer.Argument(metavar="ID", help="The cell's number, as in `farm speedups`.")],
    as_json: Json = False,
) -> None:
    """Explain a speedup: both cells, all rounds, interval, device, conditions and placement proof.

    Example: farm explain cell 12
    """
    from farm.cli.results.explain_report import cell_report

    with connect() as farm:
        view = farm.explain_cell(CellId(cell_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(cell_report(view), soft_wrap=True)


@app.command("job")
def job_command(
    job_id: Annotated[int, typer.Argument(metavar="ID", help="The job's number, as in `farm matrix jobs`.")],
    as_json: Json = False,
) -> None:
    """Explain one measurement: file, program, device, conditions, placement proof, and its use.

    Example: farm explain job 17
    """
    from farm.cli.results.explain_report import number_report

    with connect() as farm:
        view = farm.explain_job(JobId(job_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(number_report(view), soft_wrap=True)
