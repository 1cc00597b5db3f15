"""`farm speedups --by`: speedups over devices that have something in common."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farm.cli.shell.tables import Column, Listing, name, number
from farm.core.base.units import ratio_text
from farm.core.errors import InvalidInput
from farm.presentation.labels import short_labels
from farm.presentation.speedup_blocks import (
    blocks_by_comparison,
    group_name,
    group_setup_text,
    other_work_text,
)
from farm.presentation.speedup_notes import work_notes
from farm.presentation.text import change_text, interval_text
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView

ByOption = Annotated[
    GroupBy | None,
    typer.Option(
        "--by",
        help="Over the devices of one device model, SoC or Android release, or over all; or a row for each"
        " device.",
    ),
]
_LEGEND = (
    "Each device counts once, with its newest session. Speedup and time: geometric\n"
    "means over devices. Interval: 95 %, Student's t over devices, from three on;\n"
    "with --by device, over the rounds of that session, from five on.\n"
    "All devices: the lowest and the highest. n of N: devices that measured both\n"
    "sides, of those of the group that measured the model."
)


def check_by(by: GroupBy, *, others: Sequence[object]) -> None:
    """Refuse options that do not go with groups.

    Raises:
        InvalidInput: one of the others is given.
    """
    if any(other is not None for other in others):
        raise InvalidInput(
            f"--by {by} goes with --model, --baseline, --candidate, --sort, --since and --at",
            hint="leave the other options out",
        )


_SPEEDUP: tuple[Column[GroupSpeedupView], ...] = (
    number("speedup", lambda view: ratio_text(view.speedup)),
    number("interval", lambda view: interval_text(view.ci_low, view.ci_high)),
)
_TIME: Column[GroupSpeedupView] = number(
    "time", lambda view: change_text(view.baseline_ns, view.candidate_ns)
)
_OTHER_WORK: Column[GroupSpeedupView] = name(
    "but", other_work_text, is_shown=lambda views: any(map(other_work_text, views))
)
_group_table = Listing[GroupSpeedupView](
    name("candidate", lambda view: view.candidate),
    *_SPEEDUP,
    number("all devices", lambda view: interval_text(view.low, view.high)),
    _TIME,
    number("devices", lambda view: f"{view.devices} of {view.of_devices}"),
    _OTHER_WORK,
)
_device_table = Listing[GroupSpeedupView](
    name("device", group_name),
    *_SPEEDUP,
    _TIME,
    number("rounds", lambda view: view.rounds),
    _OTHER_WORK,
)
#: Of notes below a table.
_WIDTH = 80


def nothing_text(*, is_filtered: bool) -> str:
    """Return what is said where there is no comparison, or filters left none."""
    none = "No comparison matches: fewer filters may show some" if is_filtered else "No comparisons yet"
    return f"{none}; `farm matrix list` shows the progress of matrices."


def group_tables(views: Sequence[GroupSpeedupView], *, is_filtered: bool = False) -> RenderableType:
    """Return a table for each group, model and baseline, or one with a row for each device, with a legend."""
    if not views:
        return Text(nothing_text(is_filtered=is_filtered))
    parts: list[RenderableType] = []
    if views[0].by is GroupBy.DEVICE:
        for rows in blocks_by_comparison(views):
            heading = f"{rows[0].candidate}: {group_setup_text(rows[0])}"
            parts += [Text(heading, style="bold"), _device_table(rows)]
            parts += [*map(Text, work_notes(rows, width=_WIDTH)), Text("")]
        return Group(*parts, Text(_LEGEND, style="dim"))
    for _, own in groupby(sorted(views, key=_table_key), key=_table_key):
        rows = list(own)
        short = short_labels([rows[0].baseline, *(row.candidate for row in rows)])
        rows = [row.model_copy(update={"candidate": short[row.candidate]}) for row in rows]
        parts += [Text(group_name(rows[0]), style="bold"), Text(group_setup_text(rows[0]))]
        parts += [_group_table(rows), *map(Text, work_notes(rows, width=_WIDTH)), Text("")]
    return Group(*parts, Text(_LEGEND, style="dim"))


def _table_key(view: GroupSpeedupView) -> tuple[str, bool, str, str, str]:
    return view.group or "", view.virtual, view.model or "", view.harness, view.baseline
