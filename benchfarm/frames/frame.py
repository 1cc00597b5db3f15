"""Answers of the farm as typed rows, and as frames of pandas, polars and Arrow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from benchfarm.frames.arrow import ColumnData, ColumnType, arrow_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameColumn(Generic[R_contra]):
    """A column of a frame: its name with the unit, and its value in a row."""

    name: str
    type: ColumnType
    value: Callable[[R_contra], object]


class ArrowColumns:
    """Columns that any library can take by the Arrow PyCapsule interface."""

    @property
    def column_data(self) -> Mapping[str, ColumnData]:
        """Return the columns by name."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.column_data)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the frame as an Arrow stream, for polars, pyarrow, duckdb and others."""
        return arrow_table(self.column_data).__arrow_c_stream__(requested_schema)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row; needs no package."""
        expanded = [data.expanded() for data in self.column_data.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*expanded, strict=True)]

    def to_arrow(self) -> "pyarrow.Table":
        """Return a pyarrow table; needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars frame; needs polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas frame; needs pandas alone. Missing integers and booleans are `<NA>`."""
        import pandas

        dtypes = {
            ColumnType.TEXT: "string",
            ColumnType.INTEGER: "Int64",
            ColumnType.NUMBER: "float64",
            ColumnType.BOOLEAN: "boolean",
            ColumnType.TIME: "datetime64[us, UTC]",
        }
        series: dict[str, Any] = {}
        for name, data in self.column_data.items():
            is_text = data.type is ColumnType.TEXT
            values = (
                [None if value is None else str(value) for value in data.values] if is_text else data.values
            )
            if data.places is None:
                series[name] = pandas.Series(values, dtype=dtypes[data.type])
            else:
                few = pandas.Series(values, dtype="category" if is_text else dtypes[data.type])
                series[name] = few.take(data.places).reset_index(drop=True)
        return pandas.DataFrame(series)


class Frame(ArrowColumns, Generic[R]):
    """The rows of an answer, each the farm's own document, with columns made from them.

    It is no `Sequence`, which polars would take for a list of objects. Invariant: the columns have one
    value for each row, in the order of the rows.
    """

    def __init__(self, rows: Sequence[R], columns: Sequence[FrameColumn[R]], *, as_of: datetime) -> None:
        self.rows = tuple(rows)
        #: The time that the rows are the state of: that of the question, or the one that was asked for.
        self.as_of = as_of
        self._columns = tuple(columns)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __repr__(self) -> str:
        size = f"{len(self)} rows, {len(self.columns)} columns"
        return f"<{type(self).__name__}: {size}, as of {self.as_of:%Y-%m-%d %H:%M:%S} UTC>"

    @cached_property
    def column_data(self) -> Mapping[str, ColumnData]:
        """Return the columns by name."""
        data = {
            column.name: ColumnData(type=column.type, values=[column.value(row) for row in self.rows])
            for column in self._columns
        }
        return {**data, "as_of": ColumnData(type=ColumnType.TIME, values=[self.as_of] * len(self))}
