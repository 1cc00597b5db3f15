"""`farm history detect`: find the changes in a file of points."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.shell.options import Json
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.errors import InvalidInput
from farm.core.results.history.changes.points import Change
from farm.core.results.history.points_from_csv import PointTable, point_table
from farm.presentation.text import plural

PointsFile = Annotated[Path, typer.Argument(metavar="POINTS", help="Points as CSV; - is stdin.")]


def detect(file: PointsFile, as_json: Json = False) -> None:
    """Find the changes in a file of points: what changed, since when, by how much and because of what.

    A point is one series in one session. Changes are found session by session, without looking ahead.
    Works without a farm; docs/detection.md describes the columns.

    Example: farm history detect points.csv --json
    """
    # Not at the top: the other commands of the group must not import numpy, which they may lack.
    from farm.core.results.history.changes.detect import detect as detect_changes

    table = _read(file)
    for assumption in table.assumptions:
        print_notice(assumption)
    changes = detect_changes(table.points)
    if as_json:
        print_json([change_document(change, table.day_labels) for change in changes])
        return
    if changes:
        print_data(_listing(table.day_labels)(changes))
    print_notice(f"{plural(len(changes), 'change')} in {plural(len(table.points), 'point')}.")


def _read(file: Path) -> PointTable:
    try:
        if str(file) == "-":
            return point_table(sys.stdin)
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return point_table(lines)
    except (FileNotFoundError, IsADirectoryError):
        what = "a folder" if file.is_dir() else "no such file"
        raise InvalidInput(f"{file}: {what}", hint="give the path of a CSV file of points") from None
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error.message}", hint=error.hint) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{file}: not text in UTF-8", hint="write the points as CSV in UTF-8") from None


def change_document(change: Change, day_labels: Mapping[int, int | str]) -> dict[str, object]:
    """Return a change as `--json` prints it."""
    return {
        "series": change.series,
        "scope": dict(change.scope) or None,
        "day": day_labels[change.day],
        "delta": round(change.delta, 6),
        "cause": str(change.cause),
        "told": day_labels[change.told],
    }


def _listing(day_labels: Mapping[int, int | str]) -> Listing[Change]:
    return Listing[Change](
        name("since", lambda change: day_labels[change.day]),
        prose("what", _what),
        number("time", lambda change: f"{change.delta_percent:+.1f} %"),
        name("cause", lambda change: change.cause),
        number("series", lambda change: len(change.evidence)),
        name("found", lambda change: day_labels[change.told]),
    )


def _what(change: Change) -> str:
    if change.series is not None:
        return change.series
    return ", ".join(f"{key} {value}" for key, value in change.scope.items())
