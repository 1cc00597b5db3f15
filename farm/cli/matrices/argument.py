"""The matrix that a command is about, where it can be about all of them: `3`, or `--matrix 3`."""

from typing import Annotated

import typer

from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput

MatrixArgument = Annotated[
    int | None, typer.Argument(metavar="[MATRIX]", help="Of this matrix only, by its number.")
]
MatrixOption = Annotated[int | None, typer.Option("--matrix", metavar="ID", help="The same as MATRIX.")]


def selected_matrix(argument: int | None, option: int | None) -> MatrixId | None:
    """The one that was named, in either place; None for all.

    Raises:
        InvalidInput: two were named.
    """
    if argument is not None and option is not None and argument != option:
        raise InvalidInput(
            f"it is about matrix {argument} or about matrix {option}", hint="leave one of them out"
        )
    named = option if argument is None else argument
    return None if named is None else MatrixId(named)
