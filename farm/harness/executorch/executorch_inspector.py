"""The table of ExecuTorch's Inspector: a profile's events in plain columns, in a frame, or separated by tabs.

Its columns differ by version and options: percentiles may stand before the average, the raw values before
those, and an index before all. The heading names them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
_EVENT, _DELEGATED, _BACKEND = "event_name", "is_delegated_op", "delegate_backend_name"
#: With a frame, and without one.
_BETWEEN = re.compile(r"\s*[\u2502|]\s*|\t")
_ENDS = re.compile(r"^\s*[\u2502|]|[\u2502|]\s*$")
_IN_ROWS = ("True", "False", _EVENT)
#: Without a frame: columns before the figures, the figures, and columns after; an empty cell leaves nothing.
_PLAIN = re.compile(
    rf"\S.{{0,60}}?\s{{2,}}(\S.{{0,200}}?)(?:\s+\[[^\[\]]{{0,2000}}\])?\s{{2,}}(?:{_NUMBER}\s+){{1,6}}"
    r".*?\s*\b(True|False)(?:\s+(\w{1,60}))?$"
)
#: Lines without it are not searched for a row's other parts.
_TAIL = re.compile(r"\b(?:True|False)(?:\s+\w{1,60})?$")
_WIDE = re.compile(r"\s{3,}")
_INDEX = re.compile(r"[0-9]{1,9}\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorRow:
    """One event of a profile."""

    event: str
    delegated: bool
    #: Empty where the table has no such column.
    backend: str = ""
    line: str = ""


def inspector_table_rows(text: str) -> list[InspectorRow]:
    """Return every row of each table, in order."""
    rows: list[InspectorRow] = []
    heading: list[str] = []
    for line in plain_lines(text):
        if not any(word in line for word in _IN_ROWS):
            continue
        cells = _cells(line)
        if _EVENT in cells or (_EVENT in line and _DELEGATED in line):
            heading = cells if len(cells) > 1 else [cell for cell in re.split(r"\s{2,}", line) if cell]
        elif (row := _framed_row(cells, heading, line) if len(cells) > 1 else _plain_row(line)) is not None:
            rows.append(row)
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _BETWEEN.split(_ENDS.sub("", line))]


def _framed_row(cells: Sequence[str], heading: Sequence[str], line: str) -> InspectorRow | None:
    """Parse a row of a framed table; trailing empty cells may be missing."""
    names = heading[1:] if heading and not heading[0] else heading
    cells = cells[1:] if cells[0].isdigit() else cells
    if not {_EVENT, _DELEGATED} <= set(names) or len(cells) > len(names):
        return None
    cell_by_name = dict(zip(names, cells, strict=False))
    if cell_by_name.get(_DELEGATED) not in ("True", "False"):
        return None
    return InspectorRow(
        event=cell_by_name.get(_EVENT, ""),
        delegated=cell_by_name[_DELEGATED] == "True",
        backend=cell_by_name.get(_BACKEND, ""),
        line=line,
    )


def _plain_row(line: str) -> InspectorRow | None:
    if _TAIL.search(line) is None:
        return None
    row = _WIDE.sub("  ", line)
    match = _PLAIN.match(_INDEX.sub("", row, count=1) if row[0].isdigit() else row)
    if match is None:
        return None
    return InspectorRow(event=match[1], delegated=match[2] == "True", backend=match[3] or "", line=line)
