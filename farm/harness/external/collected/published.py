"""Numbers that others published, in a table that a person typed: CSV with the columns of docs/import.md."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from farm.core.errors import InvalidInput
from farm.harness.external.results import (
    MAX_RESULTS,
    ExternalFile,
    ExternalResult,
    ImportFormat,
    Statistic,
)

_NEEDED = ("device", "model", "precision", "backend", "value", "unit", "tool", "source")
_FURTHER = ("os", "chip", "threads", "statistic", "tool_version", "date", "note")
_UNITS = ("ns", "us", "ms", "s")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", re.ASCII)
_HINT = f"its columns are {', '.join(_NEEDED)}, and if told {', '.join(_FURTHER)}: docs/import.md"


def is_published(text: str) -> bool:
    """Tell whether the first line of a text names the columns of such a table."""
    return set(_NEEDED) <= {name.strip() for name in text.partition("\n")[0].split(",")}


def published_file(text: str) -> ExternalFile:
    """Return each row of a table as a result.

    Raises:
        InvalidInput: a column is unknown, or a row is not whole, or has no number, unit or source.
    """
    rows = csv.DictReader(StringIO(text), strict=True, skipinitialspace=True)
    try:
        rows.fieldnames = _columns(rows.fieldnames or ())
        results = tuple(_results(rows))
    except csv.Error as error:
        raise InvalidInput(f"line {rows.line_num} is no row of a table: {error}", hint=_HINT) from error
    return ExternalFile(format=ImportFormat.PUBLISHED, results=results)


def _columns(names: Sequence[str]) -> list[str]:
    """Return the columns of a table. Raises like `published_file`."""
    columns = [name.strip() for name in names]
    unknown = sorted(set(columns) - {*_NEEDED, *_FURTHER})
    if unknown or len(columns) != len(set(columns)):
        named = ", ".join(unknown) or "a name twice"
        raise InvalidInput(f"its first line has {named[:200]}", hint=_HINT)
    return columns


def _results(rows: "csv.DictReader[str]") -> Iterator[ExternalResult]:
    for number, row in enumerate(rows, start=1):
        place = f"line {rows.line_num}"
        if number > MAX_RESULTS:
            raise InvalidInput(f"more than {MAX_RESULTS} rows", hint="split the file")
        # Cells that are too many have no name, those that are missing no text.
        if any(name is None or text is None for name, text in row.items()):
            raise InvalidInput(f"{place} has another number of cells than the first", hint=_HINT)
        yield _result({name: text.strip() for name, text in row.items()}, place)


def _result(row: Mapping[str, str], place: str) -> ExternalResult:
    missing = [name for name in _NEEDED if not row[name]]
    if missing:
        raise InvalidInput(f"{place} has no {', '.join(missing)}", hint=_HINT)
    if not _NUMBER.fullmatch(row["value"]) or not float(row["value"]):
        raise InvalidInput(
            f"{place}: {row['value'][:40]!r} is no time", hint="write it like 25.6, without its unit"
        )
    if row["unit"] not in _UNITS:
        raise InvalidInput(f"{place}: the unit is {row['unit'][:40]!r}", hint=f"one of {', '.join(_UNITS)}")
    statistic = row.get("statistic") or Statistic.VALUE
    if statistic not in set(Statistic):
        raise InvalidInput(
            f"{place}: the statistic is {statistic[:40]!r}", hint=f"one of {', '.join(Statistic)}"
        )
    told = ("precision", "chip", "threads", "source", "note")
    return ExternalResult(
        tool=row["tool"],
        tool_version=row.get("tool_version") or None,
        model=row["model"],
        device=row["device"],
        os=row.get("os") or None,
        backend=row["backend"],
        metric="inference",
        value=float(row["value"]),
        unit=row["unit"],
        statistic=Statistic(statistic),
        date=row.get("date") or None,
        settings={name: row[name] for name in told if row.get(name)},
    )
