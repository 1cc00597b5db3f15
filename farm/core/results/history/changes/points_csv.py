"""Points as CSV: the columns of `farm history detect`."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from farm.core.errors import InvalidInput
from farm.core.results.history.changes.points import Point

REQUIRED = ("series", "device", "network", "variant", "harness", "day", "log_time", "log_speedup")
OPTIONAL = ("time", "se_time", "se_speedup", "file", "program", "os")
#: Days from here on are ordinals of dates, those before are numbers: 1873-10-16.
_FIRST_DATE = 684_000
_MISSING = frozenset({"", "nan", "none", "null", "na"})
_COLUMNS_HINT = (
    f"the columns {', '.join(REQUIRED)} are required; {', '.join(OPTIONAL)} are used, others are not"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """Points, and how their days are written."""

    points: Sequence[Point]
    #: How the file writes each day; numbers are numbers.
    day_labels: Mapping[int, int | str]


def point_table(lines: Iterable[str]) -> PointTable:
    """Parse points.

    Empty cells and NaN are values that do not exist; rows without time and speedup are left out. The order of
    rows does not matter.

    Raises:
        InvalidInput: a column is missing, or a cell is not what its column holds; names line and column.
    """
    reader = csv.reader(lines)
    header = [name.strip().removeprefix("\ufeff") for name in next(reader, [])]
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise InvalidInput(f"the file has no column {missing[0]}", hint=_COLUMNS_HINT)
    place = {name: header.index(name) for name in (*REQUIRED, *OPTIONAL) if name in header}
    points: list[Point] = []
    day_by_cell: dict[str, int] = {}
    for row in reader:
        if not row or not any(row):
            continue
        if len(row) != len(header):
            raise InvalidInput(
                f"line {reader.line_num}: {len(row)} cells, but {len(header)} columns",
                hint="each row has a cell for each column of the first line",
            )
        cells = {name: row[at].strip() for name, at in place.items()}
        day = day_by_cell.get(cells["day"])
        if day is None:
            day = day_by_cell[cells["day"]] = _day(cells["day"], reader.line_num)
        point = _point(cells, day, reader.line_num)
        if point.has_value:
            points.append(point)
    labels = {day: int(cell) if cell.isdecimal() else cell for cell, day in reversed(day_by_cell.items())}
    if any(day < _FIRST_DATE for day in labels) and any(day >= _FIRST_DATE for day in labels):
        raise InvalidInput(
            "some days are numbers and some are dates", hint="write all days alike: 2026-01-31, or 17"
        )
    return PointTable(points=points, day_labels=labels)


def _point(cells: Mapping[str, str], day: int, line: int) -> Point:
    for name in ("series", "device"):
        if not cells[name]:
            raise InvalidInput(f"line {line}: {name} is empty", hint="each point names its series and device")
    return Point(
        series=cells["series"],
        device=cells["device"],
        network=cells["network"],
        variant=cells["variant"],
        harness=cells["harness"],
        day=day,
        time=cells.get("time", ""),
        log_time=_number(cells, "log_time", line),
        se_time=_number(cells, "se_time", line),
        log_speedup=_number(cells, "log_speedup", line),
        se_speedup=_number(cells, "se_speedup", line),
        file=cells.get("file", ""),
        program=cells.get("program", ""),
        os=cells.get("os", ""),
    )


def _number(cells: Mapping[str, str], name: str, line: int) -> float:
    cell = cells.get(name, "")
    if cell.lower() in _MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        raise InvalidInput(
            f"line {line}: {name} is {cell!r}, not a number",
            hint="natural logarithms, such as -0.0513; an empty cell for a value that does not exist",
        ) from None
    return value if math.isfinite(value) else math.nan


def _day(cell: str, line: int) -> int:
    """Return a date as its ordinal, and a number as itself."""
    for parse in (_number_of_day, date.fromisoformat, datetime.fromisoformat):
        try:
            day = parse(cell)
        except (ValueError, OverflowError):
            continue
        return day if isinstance(day, int) else day.toordinal()
    raise InvalidInput(
        f"line {line}: day is {cell!r}", hint="a day is a date such as 2026-01-31, or a whole number"
    )


def _number_of_day(cell: str) -> int:
    value = float(cell)
    if not value.is_integer() or abs(value) >= _FIRST_DATE:
        raise ValueError(cell)
    return int(value)
