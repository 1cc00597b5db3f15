"""`farm speedups --by`: speedups over devices that have something in common."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.shell.formatting import EMPTY_CELL, change_text
from farm.cli.shell.tables import Listing, name, number
from farm.core.base.units import ratio_text
from farm.core.errors import InvalidInput
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

ByOption = Annotated[
    GroupBy | None,
    typer.Option("--by", help="Over the devices of one device model, SoC or Android release, or over all."),
]
_LEGEND = (
    "Each device counts once, with its newest session. Speedup and time: geometric means over devices.\n"
    "95 % interval: Student's t over devices, from three on. n of N: devices that measured both sides,\n"
    "of those of the group that measured the model."
)


def check_by(by: GroupBy, *, others: Sequence[object]) -> None:
    """Refuse options that do not go with groups.

    Raises:
        InvalidInput: one of the others is given.
    """
    if any(other is not None for other in others):
        raise InvalidInput(
            f"--by {by} goes with --model, --since and --json only", hint="leave the other options out"
        )


_group_table = Listing[GroupSpeedupView](
    name("group", lambda view: f"{view.group or EMPTY_CELL}{' (virtual)' if view.virtual else ''}"),
    name("model", lambda view: view.model or view.harness),
    name("candidate", lambda view: f"{view.candidate} vs {view.baseline}"),
    number("speedup", lambda view: ratio_text(view.speedup)),
    number("95 % interval", lambda view: _range(view.ci_low, view.ci_high)),
    number("lowest to highest", lambda view: _range(view.low, view.high)),
    number("time", lambda view: change_text(view.baseline_ns, view.candidate_ns)),
    number("devices", lambda view: f"{view.devices} of {view.of_devices}"),
)


def group_tables(views: Sequence[GroupSpeedupView]) -> RenderableType:
    """Return the table of groups, with a legend."""
    if not views:
        return Text("No comparisons yet: `farm matrix list` shows the progress of matrices.")
    return Group(_group_table(views), Text(_LEGEND, style="dim"))


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return EMPTY_CELL
    return " to ".join(ratio_text(bound).removesuffix("x") for bound in (low, high))
