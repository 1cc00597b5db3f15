"""Columns that say what a row is about: the device, the model file, the program and the flags."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from benchfarm.frames.arrow import ColumnType
from benchfarm.frames.frame import FrameColumn
from farm.wire.documents.matrices.cell_setup import CellSetup
from farm.wire.documents.results.changes import CommonSetup
from farm.wire.documents.results.history import SeriesSetup

R = TypeVar("R")
Setup = CellSetup | SeriesSetup | CommonSetup

_SERIES_FIELDS = (
    "harness",
    "model",
    "variant",
    "precision",
    "format",
    "memory_format",
    "target",
    "backend",
)
_COMMON_FIELDS = tuple(field for field in _SERIES_FIELDS if field != "variant")
_SETUP_FIELDS = (*_SERIES_FIELDS, "variant_digest", "program_digest")


def text(name: str, value: Callable[[R], object] | None = None) -> FrameColumn[R]:
    """Return a column of texts, by default those of the field of its name."""
    return FrameColumn(name=name, type=ColumnType.TEXT, value=value or _field(name))


def integer(name: str, value: Callable[[R], int | None] | None = None) -> FrameColumn[R]:
    """Return a column of whole numbers."""
    return FrameColumn(name=name, type=ColumnType.INTEGER, value=value or _field(name))


def ratio(name: str, value: Callable[[R], float | None] | None = None) -> FrameColumn[R]:
    """Return a column of numbers without a unit."""
    return FrameColumn(name=name, type=ColumnType.NUMBER, value=value or _field(name))


def number(name: str, value: Callable[[R], float | None]) -> FrameColumn[R]:
    """Return a column of numbers, whose unit is in its name."""
    return FrameColumn(name=name, type=ColumnType.NUMBER, value=value)


def flag(name: str, value: Callable[[R], bool | None] | None = None) -> FrameColumn[R]:
    """Return a column of true and false."""
    return FrameColumn(name=name, type=ColumnType.BOOLEAN, value=value or _field(name))


def moment(name: str, value: Callable[[R], datetime | None] | None = None) -> FrameColumn[R]:
    """Return a column of times, in UTC."""
    return FrameColumn(name=name, type=ColumnType.TIME, value=value or _field(name))


def milliseconds(name: str, value_ns: Callable[[R], float | None]) -> FrameColumn[R]:
    """Return a column of times in milliseconds of a value in nanoseconds."""

    def value(row: R) -> float | None:
        time_ns = value_ns(row)
        return None if time_ns is None else time_ns / 1e6

    return FrameColumn(name=name, type=ColumnType.NUMBER, value=value)


def device_columns() -> tuple[FrameColumn[object], ...]:
    """Return the columns of the device of a row."""
    return (
        text("device", _device_name),
        text("device_id"),
        text("device_model"),
        text("soc"),
        flag("virtual"),
    )


def setup_columns(setup: Callable[[R], CellSetup], *, prefix: str = "") -> tuple[FrameColumn[R], ...]:
    """Return the columns of what a cell runs; `settings` is JSON of the flags that are not the defaults."""
    return _columns_of(setup, _SETUP_FIELDS, prefix)


def series_columns(
    setup: Callable[[R], SeriesSetup | None], *, prefix: str = ""
) -> tuple[FrameColumn[R], ...]:
    """Return the columns of what a series runs; the digests are those of its points."""
    return _columns_of(setup, _SERIES_FIELDS, prefix)


def common_columns(
    setup: Callable[[R], CommonSetup | None], *, prefix: str = ""
) -> tuple[FrameColumn[R], ...]:
    """Return the columns of what several series run alike; empty where they differ."""
    return _columns_of(setup, _COMMON_FIELDS, prefix)


def _columns_of(
    setup: Callable[[R], Setup | None], fields: Iterable[str], prefix: str
) -> tuple[FrameColumn[R], ...]:
    columns = tuple(text(f"{prefix}{field}", _of(setup, _field(field))) for field in fields)
    return (*columns, text(f"{prefix}settings", _of(setup, _settings)))


def _of(setup: Callable[[R], Setup | None], value: Callable[[Setup], object]) -> Callable[[R], object]:
    def value_of(row: R) -> object:
        its = setup(row)
        return None if its is None else value(its)

    return value_of


def _settings(setup: Setup) -> str | None:
    if setup.changed_settings is None:
        return None
    return json.dumps(setup.changed_settings, sort_keys=True, ensure_ascii=False)


def _field(name: str) -> Callable[..., object]:
    return lambda row: getattr(row, name)


def _device_name(row: object) -> object:
    return getattr(row, "device_label", None) or getattr(row, "device_id", None)
