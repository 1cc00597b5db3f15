"""`farm matrix stand` and `farm matrix standing`: matrices that the farm keeps measuring."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import RenderableType

from farm.cli.matrices.file import send_file
from farm.cli.shell.address import connect
from farm.cli.shell.next_steps import farm_command
from farm.cli.shell.options import Json, MatrixFile
from farm.cli.shell.output import print_done, print_notice, show
from farm.cli.shell.tables import Listing, name, number, prose, sections, sheet
from farm.client.farm_client import FarmClient
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound
from farm.core.matrices.standing import Coverage
from farm.presentation.labels import device_name, names_text
from farm.presentation.text import counts_text, local_time_text, plural
from farm.wire.documents.matrices.standing import (
    CoverageCounts,
    CoveredDevice,
    StandingSummary,
    StandingView,
    UncoveredCell,
    standing_spec,
)


def stand(file: MatrixFile, as_json: Json = False) -> None:
    """Let the farm keep measuring a matrix: what is missing now, and what new versions make missing later.

    A new device, system build, variant or program makes exactly its cells missing. The file has two keys more
    than other matrices. By `schedule: "0 2 * * *"` (minute, hour, day, month, weekday, in UTC), all cells are
    measured again; `skip:` leaves cells out until a day, for a reason. docs/matrix.md has both. A second file
    of the same name replaces the first.

    Example: farm matrix stand nightly.yaml
    """
    with connect() as farm:
        view = send_file(file, farm.stand_matrix, check=standing_spec)
    print_done(view, _stands_text(view), as_json=as_json)


def _stands_text(view: StandingView) -> str:
    queued = f"matrix {view.last_matrix_id} measures what was missing" if view.cells.queued else ""
    after = "" if view.next_due_at is None else f"next session {local_time_text(view.next_due_at)}"
    parts = "; ".join(filter(None, [cells_text(view.cells), queued, after]))
    again = "" if view.changed_at == view.created_at else " again, in place of what stood under this name"
    return f"{view.name} stands{again}: {parts}.\nIts coverage: {farm_command()} matrix standing {view.name}"


def standing(
    matrix: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the coverage of this one.")
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End it: nothing is queued for it any more.")] = False,
    as_json: Json = False,
) -> None:
    """List the matrices that stand; with NAME, what is measured of one, what is missing, and why.

    Example: farm matrix standing nightly
    """
    with connect() as farm:
        if matrix is None and end:
            raise InvalidInput("--end ends one matrix", hint="name it: `farm matrix standing NAME --end`")
        if matrix is None:
            views = farm.standing_matrices()
            show(views, _standing_table, as_json=as_json)
            if not views and not as_json:
                print_notice(f"No matrix stands: {farm_command()} matrix stand FILE lets one stand.")
            return
        found = _named(farm, matrix)
        if end:
            ended = farm.end_standing_matrix(found.standing_id)
            print_done(ended, f"{found.name} stands no more; its matrices go on.", as_json=as_json)
            return
        view = farm.standing_matrix(found.standing_id)
    show(view, standing_report, as_json=as_json)
    if not as_json and view.more_uncovered:
        print_notice(f"{plural(view.more_uncovered, 'more cell')} without a measurement.")


def _named(farm: FarmClient, matrix: str) -> StandingSummary:
    by_name = {summary.name: summary for summary in farm.standing_matrices()}
    if matrix in by_name:
        return by_name[matrix]
    hint = name_hint(matrix, by_name) or "`farm matrix stand FILE` lets one stand"
    raise NotFound(f"no matrix `{matrix}` stands", hint=hint)


def standing_report(view: StandingView) -> RenderableType:
    """Return the coverage of a standing matrix."""
    return sections(
        sheet(
            [
                ("standing", f"{view.name} ({view.harness}), by {view.submitted_by}"),
                ("schedule", "for new versions only" if view.schedule is None else f"{view.schedule} (UTC)"),
                ("next session", None if view.next_due_at is None else local_time_text(view.next_due_at)),
                ("last matrix", view.last_matrix_id),
                ("cells", cells_text(view.cells)),
                ("problem", view.problem),
            ]
        ),
        _device_table(view.devices) if view.devices else None,
        _uncovered_table(_together(view.uncovered)) if view.uncovered else None,
    )


def cells_text(cells: CoverageCounts) -> str:
    """Return `40 measured, 2 skipped`."""
    return counts_text({word: count for word, count in cells.model_dump().items() if count}) or "no cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class _UncoveredCells:
    """Cells of a device without a measurement that counts, for the same reason."""

    device: str
    coverage: Coverage
    why: str
    labels: Sequence[str]


def _together(cells: Sequence[UncoveredCell]) -> list[_UncoveredCells]:
    """Return cells of a device with the same reason together."""
    labels: defaultdict[tuple[str, Coverage, str], list[str]] = defaultdict(list)
    for cell in cells:
        device = "all" if cell.device_id is None else device_name(cell)
        labels[device, cell.coverage, _why(cell)].append(cell.label)
    return [
        _UncoveredCells(device=device, coverage=coverage, why=why, labels=own)
        for (device, coverage, why), own in labels.items()
    ]


def _why(cell: UncoveredCell) -> str:
    until = "" if cell.until is None else f", until {cell.until}"
    matrix = "" if cell.matrix_id is None else f" (matrix {cell.matrix_id})"
    return f"{cell.reason}{until}{matrix}"


_standing_table = Listing[StandingSummary](
    name("name", lambda view: view.name),
    name("harness", lambda view: view.harness),
    name("schedule (UTC)", lambda view: view.schedule),
    name("next session", lambda view: local_time_text(view.next_due_at)),
    name("by", lambda view: view.submitted_by),
    prose("problem", lambda view: view.problem, is_shown=lambda rows: any(row.problem for row in rows)),
)

_device_table = Listing[CoveredDevice](
    name("device", device_name),
    number("measured", lambda device: device.cells.measured),
    number("queued", lambda device: device.cells.queued),
    number("failed", lambda device: device.cells.failed),
    number("missing", lambda device: device.cells.missing),
    number("skipped", lambda device: device.cells.skipped),
    number("rejected", lambda device: device.cells.rejected),
)

_uncovered_table = Listing[_UncoveredCells](
    name("device", lambda cells: cells.device),
    prose("cell", lambda cells: names_text(cells.labels)),
    name("state", lambda cells: cells.coverage),
    prose("why", lambda cells: cells.why),
)
