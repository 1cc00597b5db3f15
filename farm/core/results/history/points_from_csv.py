"""Points as CSV: the columns of `farm history detect`."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from farm.core.errors import InvalidInput
from farm.core.results.history.changes.points import Point

REQUIRED = ("series", "device", "network", "variant", "harness", "day", "log_time", "log_speedup")
OPTIONAL = ("time", "se_time", "se_speedup", "file", "program", "os", "session")
#: Whole numbers below are days, others dates such as 20260131.
_MOST_NUMBERED = 10_000_000
#: No farm measured before, or measures so late: such a date is a slip.
_YEARS = range(1900, 2101)
_MISSING = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>", "-"})
#: Times that are measured ones differ from `exp(log_time)` by a unit, and by what means differ.
_SAME_TIME = 0.2
#: Beyond it, a logarithm is that of no number.
_MOST_LOGARITHM = 700.0
_COLUMNS_HINT = (
    f"the columns {', '.join(REQUIRED)} are required; {', '.join(OPTIONAL)} are used, others are not"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """Points, and how their days are written."""

    points: Sequence[Point]
    #: How the file writes each day; numbers are numbers.
    day_labels: Mapping[int, int | str]
    #: What was assumed about the order of sessions, in sentences.
    assumptions: Sequence[str] = ()


def point_table(lines: Iterable[str]) -> PointTable:
    """Parse points.

    Empty cells and NaN are values that do not exist; rows without time and speedup are left out. The order of
    rows matters only where a series has several values at one time of a day, or of a day without times.

    Raises:
        InvalidInput: a column is missing, or a cell is not what its column holds; names the line.
    """
    rows = _rows(lines)
    header = [name.strip().removeprefix("\ufeff").lower() for name in next(rows, (0, []))[1]]
    place = _places(header)
    points: list[Point] = []
    day_by_cell: dict[str, int] = {}
    known_by_series: dict[str, tuple[str, ...]] = {}
    for line, row in rows:
        if not row or not any(row):
            continue
        if len(row) != len(header):
            raise InvalidInput(
                f"line {line}: {len(row)} cells, but {len(header)} columns",
                hint="each row has a cell for each column of the first line",
            )
        cells = {name: row[at].strip() for name, at in place.items()}
        day = day_by_cell.get(cells["day"])
        if day is None:
            day = day_by_cell[cells["day"]] = _day(cells["day"], line)
        point = _point(cells, day, line)
        measured = point.device, point.network, point.variant, point.harness
        if known_by_series.setdefault(point.series, measured) != measured:
            raise InvalidInput(
                f"line {line}: series {point.series} measures something else than before",
                hint="a series has one device, network, variant and harness",
            )
        if point.has_value:
            points.append(point)
    labels = {day: day if _is_number(cell) else cell for cell, day in reversed(day_by_cell.items())}
    if len({_is_number(cell) for cell in day_by_cell}) > 1:
        raise InvalidInput(
            "some days are numbers and some are dates", hint="write all days alike: 2026-01-31, or 17"
        )
    points, assumptions = _in_order(points)
    return PointTable(points=points, day_labels=labels, assumptions=assumptions)


def _in_order(points: list[Point]) -> tuple[list[Point], list[str]]:
    """Give values of one series and day a time each; return the points and what was assumed for it."""
    assumptions: list[str] = []
    if len({(point.series, point.day) for point in points}) < len(set(points)) and _are_measured(points):
        points = [point._replace(time="") for point in points]
        assumptions.append("The column time holds measured times, which do not order sessions.")
    first: dict[tuple[str, int, str, str], Point] = {}
    later: dict[tuple[str, int, str, str], dict[Point, int]] = {}
    ordered: list[Point] = []
    for point in points:
        # Only times order sessions: where there are none, names of sessions do not help.
        moment = point.series, point.day, point.time, point.session if point.time else ""
        if first.setdefault(moment, point) != point:
            values = later.setdefault(moment, {})
            number = values.setdefault(point, 1 + len(values))
            ordered.append(point._replace(time=f"{point.time} {number:09d}"))
        else:
            ordered.append(point)
    if later:
        count = sum(map(len, later.values()))
        assumptions.append(
            f"Values of one series and day without different times: {count}, taken in the order of the rows."
        )
    return ordered, assumptions


def _are_measured(points: Iterable[Point]) -> bool:
    """Return whether the column `time` holds what `log_time` is the logarithm of, in any unit."""
    logs: list[float] = []
    offsets: list[float] = []
    for point in points:
        if not point.time or not math.isfinite(point.log_time):
            continue
        try:
            logs.append(math.log(float(point.time)))
        except ValueError:
            return False
        offsets.append(logs[-1] - point.log_time)
    return bool(logs) and max(offsets) - min(offsets) < min(_SAME_TIME, (max(logs) - min(logs)) / 2)


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of their last line."""
    reader = csv.reader(lines)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInput(
            f"line {reader.line_num}: not CSV: {error}", hint="write the points as CSV, separated by commas"
        ) from None


def _places(header: Sequence[str]) -> dict[str, int]:
    """Return the place of each column that is used."""
    if not any(header):
        raise InvalidInput("the file has no first line with the names of columns", hint=_COLUMNS_HINT)
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise InvalidInput(f"the file has no column {missing[0]}", hint=_COLUMNS_HINT)
    used = [name for name in (*REQUIRED, *OPTIONAL) if name in header]
    repeated = [name for name in used if header.count(name) > 1]
    if repeated:
        raise InvalidInput(f"the file has {repeated[0]} in two columns", hint="name each column once")
    return {name: header.index(name) for name in used}


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
        time=_sortable_time(_name(cells, "time") or cells["day"].replace("T", " ").partition(" ")[2]),
        log_time=_logarithm(cells, "log_time", line),
        se_time=_standard_error(cells, "se_time", line),
        log_speedup=_logarithm(cells, "log_speedup", line),
        se_speedup=_standard_error(cells, "se_speedup", line),
        file=_name(cells, "file"),
        program=_name(cells, "program"),
        os=_name(cells, "os"),
        session=_name(cells, "session"),
    )


def _name(cells: Mapping[str, str], name: str) -> str:
    """Return a name; an empty one is unknown."""
    cell = cells.get(name, "")
    return "" if cell.lower() in _MISSING else cell


def _sortable_time(cell: str) -> str:
    """Return a time of a day so that numbers, and hours of one digit, have their order as text, too."""
    try:
        value = float(cell)
    except ValueError:
        return f"0{cell}" if cell[1:2] == ":" else cell
    return f"{value:032.9f}" if 0 <= value < 1e20 else cell


def _logarithm(cells: Mapping[str, str], name: str, line: int) -> float:
    value = _number(cells, name, line)
    if abs(value) > _MOST_LOGARITHM:
        raise InvalidInput(
            f"line {line}: {name} is {cells[name]}, which is no logarithm",
            hint="natural logarithms, such as 2.5",
        )
    return value


def _standard_error(cells: Mapping[str, str], name: str, line: int) -> float:
    value = _number(cells, name, line)
    if value < 0 or math.isinf(value):
        raise InvalidInput(
            f"line {line}: {name} is {cells[name]}",
            hint="standard errors are finite and not negative; empty if unknown",
        )
    return value


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
    return value


def _day(cell: str, line: int) -> int:
    """Return a date as its ordinal, and a number as itself."""
    for parse in (_number_of_day, date.fromisoformat, datetime.fromisoformat, _plain_date):
        try:
            day = parse(cell)
        except (ValueError, OverflowError):
            continue
        if isinstance(day, int):
            return day
        if day.year not in _YEARS:
            raise InvalidInput(
                f"line {line}: day is {cell!r}, of the year {day.year}",
                hint=f"a day is a date of the years {_YEARS[0]} to {_YEARS[-1]}, or a whole number",
            )
        return day.toordinal()
    raise InvalidInput(
        f"line {line}: day is {cell!r}", hint="a day is a date such as 2026-01-31, or a whole number"
    )


def _plain_date(cell: str) -> date:
    """Return a date such as 2026/1/31."""
    year, month, day = map(int, cell.replace("/", "-").split("-"))
    return date(year, month, day)


def _is_number(cell: str) -> bool:
    try:
        _number_of_day(cell)
    except ValueError:
        return False
    return True


def _number_of_day(cell: str) -> int:
    value = float(cell)
    if not value.is_integer() or abs(value) >= _MOST_NUMBERED:
        raise ValueError(cell)
    return int(value)
