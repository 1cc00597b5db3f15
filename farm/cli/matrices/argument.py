"""The optional matrix of a command, as an argument or an option: `3` or `--matrix 3`."""

from typing import Annotated

import typer

from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput

MatrixArgument = Annotated[
    int | None, typer.Argument(metavar="[MATRIX]", help="Only this matrix, by its number.")
]
MatrixOption = Annotated[int | None, typer.Option("--matrix", metavar="ID", help="Same as MATRIX.")]


def selected_matrix(argument: int | None, option: int | None) -> MatrixId | None:
    """Return the matrix from the argument or the option; None for all.

    Raises:
        InvalidInput: the two differ.
    """
    if argument is not None and option is not None and argument != option:
        raise InvalidInput(f"MATRIX is {argument} but --matrix is {option}", hint="leave one of them out")
    number = option if argument is None else argument
    return None if number is None else MatrixId(number)
