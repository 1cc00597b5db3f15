"""`farm speedups`: what is faster than what, on which phone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli.address import connect
from farm.cli.output import Json, out, print_json, talk
from farm.core.errors import NotFound
from farm.core.ids import MatrixId

if TYPE_CHECKING:
    from farm.client import FarmClient
    from farm.wire.views import SpeedupView


def speedups(
    matrix: Annotated[int | None, typer.Option(help="Of this matrix only.", metavar="ID")] = None,
    device: Annotated[str | None, typer.Option(help="On this device only.")] = None,
    model: Annotated[str | None, typer.Option(help="Of this model only.")] = None,
    as_json: Json = False,
) -> None:
    """Compare every candidate with its baseline, device by device.

    Example: farm speedups --matrix 3 --device phone-1
    """
    matrix_id = None if matrix is None else MatrixId(matrix)
    with connect() as farm:
        views = farm.speedups(matrix_id=matrix_id, device=device, model=model)
        if not views:
            _check_known(farm, device=device, model=model)
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
    else:
        print_speedups(views)


def _check_known(farm: "FarmClient", *, device: str | None, model: str | None) -> None:
    """Tell a slip from a comparison that is yet to come.

    Raises:
        NotFound: the farm has no such device, or no file of such a model.
    """
    if device is not None:
        _check_word("device", device, [view.device_id for view in farm.devices()])
    if model is not None:
        _check_word("model", model, [view.manifest.model for view in farm.variants()])


def _check_word(kind: str, word: str, known: Sequence[str]) -> None:
    from farm.core.problem import name_hint

    if word not in known:
        raise NotFound(f"no {kind} `{word}`", hint=name_hint(word, known) or f"the farm has no {kind}s yet")


def print_speedups(views: "Sequence[SpeedupView]") -> None:
    """The table on stdout; on stderr what to do where there is none."""
    from farm.cli.speedup_table import speedup_table

    if not views:
        talk("Nothing to compare yet: `farm matrix list` shows how far the matrices are.")
        return
    console = out()
    console.print(speedup_table(views, width=console.width), soft_wrap=True)
