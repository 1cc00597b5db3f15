"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
#: For endless output: one object per line can be read as it arrives.
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]
ShortYes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Recorded with the event.")]
Watch = Annotated[bool, typer.Option("--watch", help="Watch it until it is finished; Ctrl-C detaches.")]

WatchToEnd = Annotated[bool, typer.Option("--watch/--no-watch", help="Watch it until it is finished.")]
DeviceNames = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Id, label, device model or `Pixel*`; repeatable. Default: all."),
]
#: Texts of `farm.core.models.declared_inputs`.
DeclaredInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="SPEC",
        help="An input, where the file does not say: 1x3x224x224:float32 or NAME=...; repeatable.",
    ),
]
ProcessTimeout = Annotated[str, typer.Option(metavar="SPAN", help="Time-out of a process.")]

AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Exit with 0 although cells are not run because a file is missing."),
]

Metrics = Annotated[bool, typer.Option("--metrics", help="Print all further metrics, not only times.")]

#: A moment: `farm.presentation.text.past_moment`.
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Only what is since: 2026-03-01, 12h, 30d or 1y."),
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="DATE", help="As known then: 2026-03-01, 2026-03-01T12:30, or 30d ago."),
]
NamePart = Annotated[
    str | None, typer.Option("--name", metavar="TEXT", help="Only those with this text in their name.")
]
Mine = Annotated[bool, typer.Option("--mine", help="Only your own.")]
#: Of lists of what matrices measured.
MatrixName = Annotated[
    str | None,
    typer.Option("--name", metavar="TEXT", help="Only of matrices with this text in their name."),
]
MineOfMatrices = Annotated[bool, typer.Option("--mine", help="Only of matrices that you submitted.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N, the newest.")]

Data = Annotated[
    Path | None, typer.Option(help="The farm's data folder; default: FARM_DATA_DIR, else ./farm-data.")
]
DeviceName = Annotated[
    str, typer.Argument(metavar="ID", help="Device id, label, or a unique prefix of either.")
]
JobNumber = Annotated[int, typer.Argument(metavar="ID", help="The job's number, as in `farm matrix jobs`.")]
MatrixNumber = Annotated[
    int, typer.Argument(metavar="ID", help="The matrix's number, as in `farm matrix list`.")
]
MatrixFile = Annotated[Path, typer.Argument(metavar="FILE", help="A matrix in YAML.")]
#: The optional matrix of a command, as an argument or an option: `3` or `--matrix 3`.
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
