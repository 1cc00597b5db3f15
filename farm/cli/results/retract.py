"""`farm retract`: withdraw measurements for a reason, or let them count again."""

import sys
from typing import Annotated

import typer

from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, ShortYes
from farm.cli.shell.output import print_done, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.core.errors import InvalidInput
from farm.presentation.text import plural
from farm.wire.documents.results.history import RetractRequest


def retract(
    matrix: Annotated[int | None, typer.Option(metavar="ID", help="All measurements of a matrix.")] = None,
    device: Annotated[str | None, typer.Option(help="Of the matrix, only on this device.")] = None,
    cell: Annotated[int | None, typer.Option(metavar="ID", help="All measurements of a cell.")] = None,
    attempt: Annotated[int | None, typer.Option(metavar="ID", help="The measurement of one run.")] = None,
    reason: Annotated[
        str, typer.Option(help="Why; kept as the reason of their quality, and in `farm events`.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let them count again.")] = False,
    yes: ShortYes = False,
    as_json: Json = False,
) -> None:
    """Withdraw measurements: they are kept and shown, and compared with none any more.

    Author and reason are recorded. `farm speedups --at` a time before still shows what was known then.

    Example: farm retract --matrix 3 --device phone-1 --reason "its battery was swollen"
    """
    if sum(number is not None for number in (matrix, cell, attempt)) != 1:
        raise InvalidInput(
            "what is to be retracted is one of --matrix, --cell and --attempt",
            hint="give exactly one of them",
        )
    if not reason.strip():
        raise InvalidInput(f"{'--undo' if undo else 'a retraction'} needs a reason", hint=_reason_hint(undo))
    request = RetractRequest(
        matrix_id=None if matrix is None else MatrixId(matrix),
        cell_id=None if cell is None else CellId(cell),
        attempt_id=None if attempt is None else AttemptId(attempt),
        device=device,
        reason=reason.strip(),
        undo=undo,
    )
    if not yes and sys.stdin.isatty():
        print_notice(f"{'Let count again' if undo else 'Retract'}: {_target_text(request)}. Reason: {reason}")
        typer.confirm("Go ahead?", abort=True, err=True)
    with connect() as farm:
        count = _apply(farm, request)
    print_done({"measurements": count, "undo": undo}, _done_text(count, undo=undo), as_json=as_json)


def _reason_hint(undo: bool) -> str:
    return f'--reason "why these numbers are {"right after all" if undo else "wrong"}"'


def _done_text(count: int, *, undo: bool) -> str:
    if not count:
        return f"Nothing changed: all of them {'count' if undo else 'are retracted'} already."
    return f"{plural(count, 'measurement')} {'count again' if undo else 'retracted'}."


def _target_text(request: RetractRequest) -> str:
    if request.matrix_id is not None:
        where = f" on {request.device}" if request.device else ""
        return f"all measurements of matrix {request.matrix_id}{where}"
    if request.cell_id is not None:
        return f"all measurements of cell {request.cell_id}"
    return f"the measurement of attempt {request.attempt_id}"


def _apply(farm: FarmClient, request: RetractRequest) -> int:
    count, has_more = 0, True
    while has_more:
        page = farm.retract(request)
        count, has_more = count + page.measurements, page.has_more
    return count
