"""Columns of exported rows, with their types in every format."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from farm.wire.base import Wire


class ExportType(StrEnum):
    """The type of a column: its name in docs/export.md."""

    TEXT = "text"
    #: 64 bits.
    INTEGER = "integer"
    #: Double precision.
    NUMBER = "number"
    BOOLEAN = "boolean"
    #: Microseconds, UTC.
    TIME = "time"
    TEXTS = "list of text"
    INTEGERS = "list of integer"
    JSON = "JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportColumn:
    """A column of a kind of rows."""

    name: str
    type: ExportType
    is_nullable: bool


_TYPES = {
    str: ExportType.TEXT,
    int: ExportType.INTEGER,
    float: ExportType.NUMBER,
    bool: ExportType.BOOLEAN,
    datetime: ExportType.TIME,
}
_LISTS = {ExportType.TEXT: ExportType.TEXTS, ExportType.INTEGER: ExportType.INTEGERS}


@cache
def columns_of(row: type[Wire]) -> tuple[ExportColumn, ...]:
    """Return the columns of a kind of rows, in their order."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(
        ExportColumn(name=name, type=_type_of(hints[name]), is_nullable=NoneType in get_args(hints[name]))
        for name in row.model_fields
    )


def _type_of(annotation: Any) -> ExportType:
    if hasattr(annotation, "__supertype__"):
        return _type_of(annotation.__supertype__)
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        return ExportType.JSON
    if origin is list:
        return _LISTS[_type_of(arguments[0])]
    if NoneType in arguments:
        (present,) = (each for each in arguments if each is not NoneType)
        return _type_of(present)
    return _TYPES[type(arguments[0])] if arguments else _TYPES[annotation]
