"""`farm explain`: everything that one number, or one speedup, rests on."""

from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.output import Json, out, print_json
from farm.core.base.ids import CellId, JobId

app = typer.Typer(
    no_args_is_help=True, help="Explain one number or one speedup: everything it rests on, on one screen."
)


@app.command("cell")
def cell_command(
    cell_id: Annotated[
        int, typer.Argument(metavar="ID", help="The cell's number, as `farm speedups` shows it.")
    ],
    as_json: Json = False,
) -> None:
    """Explain a speedup: both cells, every round that counts or not, the interval, the phone, the proof.

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
    job_id: Annotated[
        int, typer.Argument(metavar="ID", help="The job's number, as `farm matrix jobs` shows it.")
    ],
    as_json: Json = False,
) -> None:
    """Explain one number: file, program, phone, conditions, proof, and what is made of it.

    Example: farm explain job 17
    """
    from farm.cli.results.explain_report import number_report

    with connect() as farm:
        view = farm.explain_job(JobId(job_id))
    if as_json:
        print_json(view.model_dump(mode="json"))
    else:
        out().print(number_report(view), soft_wrap=True)
