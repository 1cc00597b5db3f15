"""Columns of Python values as Arrow, by arro3-core, which is small and needs neither numpy nor pyarrow."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from farm.core.base.microseconds import to_microseconds
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from arro3.core import Array, Table


class ColumnType(StrEnum):
    """The type of a column; every column may hold nulls."""

    TEXT = "text"
    #: 64 bits, signed.
    INTEGER = "integer"
    #: Double precision.
    NUMBER = "number"
    BOOLEAN = "boolean"
    #: Microseconds, in UTC.
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnData:
    """The values of a column: as they are, or by their places among a few."""

    type: ColumnType
    values: Sequence[Any]
    #: For each row the place of its value; None: the values are those of the rows.
    places: "array[int] | None" = None

    def expanded(self) -> Sequence[Any]:
        """Return one value for each row."""
        return self.values if self.places is None else [self.values[place] for place in self.places]


def arrow_table(data_by_column: Mapping[str, ColumnData]) -> "Table":
    """Return columns of the same length as a table; repeated texts are dictionaries.

    Raises:
        InvalidInput: arro3-core is not installed.
    """
    try:
        import arro3.core as arro3
    except ModuleNotFoundError as error:
        hint = "pip install 'benchfarm[frames]' installs it; rows and to_dicts() work without"
        raise InvalidInput("frames need arro3-core, which is not installed", hint=hint) from error
    arrays = {name: _array(data) for name, data in data_by_column.items()}
    return arro3.Table.from_pydict(arrays)


def _array(data: ColumnData) -> "Array":
    import arro3.core as arro3

    if isinstance(data.values, array):
        return arro3.Array(data.values)
    values = _BY_TYPE[data.type](data.values)
    if data.places is None:
        return values
    if data.type is ColumnType.TEXT:
        # Before the rows are taken: of a dictionary these are numbers.
        values = values.cast(arro3.DataType.dictionary(arro3.DataType.int32(), arro3.DataType.string()))
    return values.take(arro3.Array(data.places))


def _texts(values: Sequence[Any]) -> "Array":
    import arro3.core as arro3

    return arro3.Array([None if value is None else str(value) for value in values], arro3.DataType.string())


def _integers(values: Sequence[Any]) -> "Array":
    import arro3.core as arro3

    return arro3.Array(list(values), arro3.DataType.int64())


def _numbers(values: Sequence[Any]) -> "Array":
    import arro3.core as arro3

    return arro3.Array(
        [None if value is None else float(value) for value in values], arro3.DataType.float64()
    )


def _booleans(values: Sequence[Any]) -> "Array":
    import arro3.core as arro3

    return arro3.Array(list(values), arro3.DataType.bool())


def _times(values: Sequence[Any]) -> "Array":
    import arro3.core as arro3

    # A timestamp cannot be made of Python's times, and is 64 bits of microseconds.
    return _integers([None if value is None else to_microseconds(value) for value in values]).cast(
        arro3.DataType.timestamp("us", tz="UTC")
    )


_BY_TYPE: Mapping[ColumnType, Callable[[Sequence[Any]], "Array"]] = {
    ColumnType.TEXT: _texts,
    ColumnType.INTEGER: _integers,
    ColumnType.NUMBER: _numbers,
    ColumnType.BOOLEAN: _booleans,
    ColumnType.TIME: _times,
}
