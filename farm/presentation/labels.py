"""Names of cells and devices in tables: what differs in the rows; what is common is named once, above."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from farm.core.matrices.matrix import value_text
from farm.presentation.text import EMPTY_CELL
from farm.wire.documents.matrices.cell_setup import CellSetup

#: Fields whose values do not say what they are about.
_NAMED = ("target", "backend")
#: Fields of the model file that are named unless they have the usual value.
_USUAL = {"memory_format": "contiguous", "target": "cpu"}
#: Names that are listed in one line at most.
_NAMES_SHOWN = 8


class NamedDevice(Protocol):
    """A row that is about a device."""

    @property
    def device_id(self) -> str | None: ...
    @property
    def device_label(self) -> str | None: ...


def device_name(row: NamedDevice) -> str:
    """Return the label of the row's device, which no other device has, or its id without one."""
    return row.device_label or row.device_id or EMPTY_CELL


def names_text(names: Sequence[str]) -> str:
    """Return names in one line: the first ones, and how many more there are."""
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def short_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return each label without the words that all of them have; all unchanged if one would be empty."""
    words_by_label = {label: label.split() for label in labels}
    common = set.intersection(*map(set, words_by_label.values())) if words_by_label else set()
    if any(set(words) == common for words in words_by_label.values()):
        return {label: label for label in words_by_label}
    return {
        label: " ".join(word for word in words if word not in common)
        for label, words in words_by_label.items()
    }


def shared_setup_text(cells: Sequence[CellSetup]) -> str:
    """Return what all cells run: `mobilenet_v2, lite, backend cpu, with iter=30`; empty if nothing."""
    shared = [
        f"{field} {value}" if field in _NAMED else str(value)
        for field in ("model", "precision", "format", "memory_format", "target", "backend")
        for value in [_shared_value(cells, field)]
        if value is not None and value != _USUAL.get(field)
    ]
    flags = shared_flags_text(cells)
    return ", ".join([*shared, *([f"with {flags}"] if flags else [])])


def shared_flags_text(cells: Sequence[CellSetup], *, without: Iterable[str] = ()) -> str:
    """Return the flags that are the same in all cells, and are not their defaults: `iter=30, threads=2`."""
    shared = set.intersection(*(set(cell.changed_settings.items()) for cell in cells))
    texts = [f"{name}={value_text(value)}" for name, value in sorted(shared)]
    left_out = set(without)
    return ", ".join(text for text in texts if text not in left_out)


def _shared_value(cells: Sequence[CellSetup], field: str) -> object:
    values = {getattr(cell, field) for cell in cells}
    return values.pop() if len(values) == 1 else None
