"""Lines of CSV: RFC 4180 quoting, without line ends."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime


def csv_line(cells: Sequence[object]) -> str:
    """Return one line; an unknown value is empty."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(["" if cell is None else cell for cell in cells])
    return buffer.getvalue()


def csv_table(columns: Sequence[str], rows: Iterable[object]) -> Iterator[str]:
    """Yield a header, and a line for each row: its attributes of these names, times as ISO 8601."""
    yield csv_line(columns)
    for row in rows:
        values = (getattr(row, column) for column in columns)
        yield csv_line([value.isoformat() if isinstance(value, datetime) else value for value in values])
