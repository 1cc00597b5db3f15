"""Tables and sheets of all commands: columns and fields are data, drawn in one place."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column as RichColumn
from rich.table import Table
from rich.text import Text

from farm.presentation.text import EMPTY_CELL

V = TypeVar("V")
#: Heading and value. An empty heading continues the field above; without a value the field is left out.
Field = tuple[str, object]
#: A line of a text report: a field, or text alone.
Line = str | Field
#: True if these rows need a column.
RowsTest = Callable[[Sequence[V]], bool]


def _always(rows: Sequence[object]) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[V]):
    """A column: its heading, and the cell of a row. None is drawn as `-`."""

    heading: str
    cell: Callable[[V], object]
    #: Gives way first where a row is too long.
    is_prose: bool = False
    is_number: bool = False
    is_shown: RowsTest[V] = _always


def name(heading: str, cell: Callable[[V], object], *, is_shown: RowsTest[V] = _always) -> Column[V]:
    """Return a column of names."""
    return Column(heading=heading, cell=cell, is_shown=is_shown)


def number(heading: str, cell: Callable[[V], object], *, is_shown: RowsTest[V] = _always) -> Column[V]:
    """Return a column of numbers, aligned to the right."""
    return Column(heading=heading, cell=cell, is_number=True, is_shown=is_shown)


def prose(heading: str, cell: Callable[[V], object], *, is_shown: RowsTest[V] = _always) -> Column[V]:
    """Return a column of text, which is wrapped if needed."""
    return Column(heading=heading, cell=cell, is_prose=True, is_shown=is_shown)


#: Text is not wrapped to less than this, where it is longer.
_LEAST_PROSE = 16
#: Names are wrapped within their words before text gets less than this.
_USUAL_PROSE = 20
#: Where a name may be wrapped; each where the one before leaves columns too wide.
_ENDS = (re.compile(r"(?<=\s)"), re.compile(r"(?<=\s)|(?<=\w/)"), re.compile(r"(?<=\s)|(?<=\w[/_-])"))


class _FittedTable(Table):
    """A table that wraps its names where they do not fit: between words if those fit, else within them.

    A number is never cut or dropped.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [
            max(cell_len(str(text)) for text in (column.header, *column._cells)) for column in self.columns
        ]
        least = sum(
            size if column.no_wrap else min(size, _LEAST_PROSE)
            for column, size in zip(self.columns, widths, strict=True)
        )
        if least + 2 * len(widths) > options.max_width:
            proses = [not column.no_wrap for column in self.columns]
            for column in self.columns:
                column.no_wrap = column.justify == "right"
                if column.no_wrap:
                    column.header = Text(str(column.header).replace(" ", "\n"))
            total = options.max_width - 2 * (len(widths) - 1)
            fitted: list[int] = []
            for wanted, end in product((_USUAL_PROSE, 0), _ENDS):
                lows = [
                    max(_least_width(column, end), min(size, wanted) if is_prose else 0)
                    for column, size, is_prose in zip(self.columns, widths, proses, strict=True)
                ]
                fitted = _fitted_widths(lows, widths, total)
                if fitted:
                    break
            for column, size in zip(self.columns, fitted, strict=False):
                column.width = size
                column._cells = [_broken_at(cell, end, size) for cell in column._cells]
        return super().__rich_console__(console, options)


def _fitted_widths(least: Sequence[int], full: Sequence[int], total: int) -> list[int]:
    """Return widths of columns, at least their least ones; empty if these are more than the total."""
    if sum(least) > total:
        return []
    wanted = [max(0, size - low) for low, size in zip(least, full, strict=True)]
    share = min(1.0, (total - sum(least)) / max(1, sum(wanted)))
    return [low + int(share * more) for low, more in zip(least, wanted, strict=True)]


def _least_width(column: RichColumn, end: re.Pattern[str]) -> int:
    """Return the width that cuts no number, and text only where a word, or a part of one, ends."""
    words = [*str(column.header).split(), *(str(text) for text in column._cells)]
    if not column.no_wrap:
        words = [word for text in words for word in text.split()]
        # Short names are whole.
        words = [
            part for word in words for part in (end.split(word) if cell_len(word) > _LEAST_PROSE else [word])
        ]
    return max(map(cell_len, words), default=0)


def _broken_at(cell: RenderableType, end: re.Pattern[str], width: int) -> RenderableType:
    """Return a name with a word that is longer than the width with line ends where its parts end."""
    if not isinstance(cell, Text) or all(cell_len(word) <= width for word in cell.plain.split()):
        return cell
    lines = [""]
    for part in end.split(cell.plain):
        if lines[-1] and cell_len((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return Text("\n".join(line.rstrip() for line in lines), style=cell.style)


class Listing(Generic[V]):
    """A table as data: its columns. Call it with rows to draw them."""

    def __init__(self, *columns: Column[V]) -> None:
        """Take the columns from left to right."""
        self._columns = columns

    def __call__(self, rows: Iterable[V]) -> Table:
        """Return the table. Text is plain: brackets in names and messages are not markup."""
        rows = list(rows)
        table = _FittedTable(
            box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False
        )
        columns = [column for column in self._columns if column.is_shown(rows)]
        for column in columns:
            table.add_column(
                column.heading,
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_prose,
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(_cell_text(column.cell(row)) for column in columns))
        return table


def sheet(fields: Iterable[Field]) -> Table:
    """Return one line for each field; fields without a value are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for heading, value in fields:
        if value:
            grid.add_row(Text(heading), Text(str(value)))
    return grid


def sections(*parts: RenderableType | None) -> Group:
    """Return the parts, an empty line between them; None is left out."""
    shown = [line for part in parts if part is not None for line in (Text(""), part)]
    return Group(*shown[1:])


def text_report(headline: str, lines: Iterable[Line], *, width: int = 12) -> Text:
    """Return a report of lines below a headline; headings of fields are `width` wide."""
    return Text("\n").join([Text(headline, style="bold"), *map(Text, text_lines(lines, width=width))])


def text_lines(lines: Iterable[Line], *, width: int = 12) -> Iterator[str]:
    """Return each line as text; fields without a value are left out."""
    for line in lines:
        if isinstance(line, str):
            yield line
        elif line[1] is not None:
            yield f"{line[0]:{width}}{line[1]}"


def _cell_text(value: object) -> Text:
    return value if isinstance(value, Text) else Text(EMPTY_CELL if value is None else str(value))
