"""`farm report`: results as one self-contained file."""

from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.options import MatrixArgument, MatrixOption, selected_matrix
from farm.cli.shell.output import print_notice
from farm.core.errors import InvalidInput

app = typer.Typer()


@app.callback()
def report() -> None:
    """Reports: pages as one self-contained file, to send and to keep."""


@app.command()
def matrix(
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to write; one that exists is replaced.")
    ],
    number: MatrixArgument = None,
    matrix: MatrixOption = None,
) -> None:
    """Write a matrix with its cells and comparisons as an HTML file that needs nothing else.

    Example: farm report matrix 3 --out report.html
    """
    matrix_id = selected_matrix(number, matrix)
    if matrix_id is None:
        raise InvalidInput("a report needs a matrix", hint="`farm matrix list` has their numbers")
    with connect() as farm:
        html = farm.matrix_report(matrix_id)
    try:
        out.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"{out} cannot be written: {error.strerror}", hint="give another file with --out"
        ) from None
    print_notice(f"{out}: matrix {matrix_id}, {len(html.encode()) / 1000:.0f} kB. Any browser shows it.")
