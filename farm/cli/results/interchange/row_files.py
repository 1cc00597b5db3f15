"""Files of rows: Parquet, CSV and JSON lines, written beside their place and renamed when they are whole."""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, assert_never

from farm.core.errors import InvalidInput
from farm.wire.base import Wire
from farm.wire.documents.results.export_columns import ExportColumn, ExportType, columns_of

#: The ending of the name of a file that is being written.
UNFINISHED = ".unfinished"


class FileFormat(StrEnum):
    """A format of exported files; the value is the ending of their names."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


class RowFile(ABC):
    """A file that is being written. It has its name once it is closed."""

    def __init__(self, path: Path, kind: type[Wire]) -> None:
        self.path = path
        self.columns = columns_of(kind)
        self.rows = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        #: Readers skip names that begin so.
        self.unfinished = path.with_name(f".{path.name}{UNFINISHED}")

    def write(self, rows: Sequence[Wire]) -> None:
        """Write rows behind those before."""
        self.rows += len(rows)
        self._write(rows)

    def finish(self) -> None:
        """Close the file, and give it its name."""
        self._close()
        self.unfinished.replace(self.path)

    def discard(self) -> None:
        """Close and remove what was written; on a full disk, its end cannot be written either."""
        with suppress(OSError):
            self._close()
        self.unfinished.unlink(missing_ok=True)

    @abstractmethod
    def _write(self, rows: Sequence[Wire]) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...


class _ParquetFile(RowFile):
    def __init__(self, path: Path, kind: type[Wire]) -> None:
        super().__init__(path, kind)
        self._arrow, parquet = parquet_modules()
        self._schema = self._arrow.schema(
            [
                self._arrow.field(column.name, _arrow_type(self._arrow, column.type), column.is_nullable)
                for column in self.columns
            ]
        )
        self._writer = parquet.ParquetWriter(self.unfinished, self._schema, compression="zstd")

    def _write(self, rows: Sequence[Wire]) -> None:
        values = {column.name: [getattr(row, column.name) for row in rows] for column in self.columns}
        self._writer.write_table(self._arrow.Table.from_pydict(values, schema=self._schema))

    def _close(self) -> None:
        self._writer.close()


class _CsvFile(RowFile):
    def __init__(self, path: Path, kind: type[Wire]) -> None:
        super().__init__(path, kind)
        self._file = self.unfinished.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow([column.name for column in self.columns])

    def _write(self, rows: Sequence[Wire]) -> None:
        self._writer.writerows([_csv_value(row, column) for column in self.columns] for row in rows)

    def _close(self) -> None:
        self._file.close()


class _JsonLinesFile(RowFile):
    def __init__(self, path: Path, kind: type[Wire]) -> None:
        super().__init__(path, kind)
        self._file = self.unfinished.open("w", encoding="utf-8")

    def _write(self, rows: Sequence[Wire]) -> None:
        self._file.writelines(f"{row.model_dump_json()}\n" for row in rows)

    def _close(self) -> None:
        self._file.close()


def open_row_file(format: FileFormat, path: Path, kind: type[Wire]) -> RowFile:
    """Begin a file of a kind of rows."""
    match format:
        case FileFormat.PARQUET:
            return _ParquetFile(path, kind)
        case FileFormat.CSV:
            return _CsvFile(path, kind)
        case FileFormat.JSONL:
            return _JsonLinesFile(path, kind)
        case _:
            assert_never(format)


def parquet_modules() -> tuple[Any, Any]:
    """Return pyarrow, and its module of Parquet.

    Raises:
        InvalidInput: it is not installed.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise InvalidInput(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'benchfarm[export]', or choose --format csv or jsonl",
        ) from error


def _arrow_type(arrow: Any, type: ExportType) -> Any:
    types = {
        ExportType.TEXT: arrow.string(),
        ExportType.JSON: arrow.string(),
        ExportType.INTEGER: arrow.int64(),
        ExportType.NUMBER: arrow.float64(),
        ExportType.BOOLEAN: arrow.bool_(),
        ExportType.TIME: arrow.timestamp("us", tz="UTC"),
        ExportType.TEXTS: arrow.list_(arrow.string()),
        ExportType.INTEGERS: arrow.list_(arrow.int64()),
    }
    return types[type]


def _csv_value(row: Wire, column: ExportColumn) -> object:
    value = getattr(row, column.name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
