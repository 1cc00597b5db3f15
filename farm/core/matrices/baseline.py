"""Baselines of the cells of a matrix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.errors import MatrixInvalid
from farm.core.matrices.axes import TypedAxes, default_axis_values
from farm.core.matrices.matrix import (
    CellKey,
    KnownHarness,
    RejectedCell,
    has_all,
    key_text,
    value_text,
    varying_axes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Relative: a cell's baseline is the same cell with these values instead of its own. Absolute: it is one
    cell for all."""

    values: CellKey
    #: The one cell, where the baseline is absolute.
    anchor: CellKey | None = None

    def of(self, key: CellKey) -> CellKey:
        """Return the key of a cell's baseline, whether it exists or not."""
        return {**key, **self.values} if self.anchor is None else self.anchor


def resolve_baseline(
    words: TypedAxes, harness: KnownHarness, runnable: Sequence[CellKey], rejected: Sequence[RejectedCell]
) -> Baseline | None:
    """Say which kind of baseline a matrix names; None where it names none.

    It is absolute when it names every axis that has several values, and just one cell has those values: then
    there is nothing left of a cell that could be kept. Cells of `include` are compared to that cell too.

    Raises:
        MatrixInvalid: no cell that can run has the values.
    """
    if words.baseline is None:
        return None
    keys = [*runnable, *(cell.key for cell in rejected)]
    values = _axis_values_of(words.baseline, keys, {**default_axis_values(words, harness)})
    fitting = [key for key in keys if has_all(key, values)]
    if not any(has_all(key, values) for key in runnable):
        raise _missing_baseline_error(values, keys, [cell for cell in rejected if cell.key in fitting])
    axes = {axis for axis, listed in words.axes.items() if len(listed) > 1}
    named = axes or varying_axes(keys)
    is_absolute = len(fitting) == 1 and named <= values.keys()
    return Baseline(values=values, anchor=fitting[0] if is_absolute else None)


def _axis_values_of(values: CellKey, keys: Sequence[CellKey], fixed: CellKey) -> CellKey:
    """Return the values on axes; a value that all cells share selects nothing, if it is right.

    Raises:
        MatrixInvalid: all cells have another value, or nothing is about an axis.
    """
    axes = {axis for key in keys for axis in key}
    wrong = [axis for axis, value in values.items() if axis not in axes and fixed.get(axis) != value]
    if wrong:
        message = "; ".join(f"all cells have {_pair(axis, fixed[axis])}" for axis in wrong)
        raise _invalid(
            f"no cell has {key_text(values)}: {message}", f"make `{wrong[0]}` an axis, or leave it out"
        )
    kept = {axis: value for axis, value in values.items() if axis in axes}
    if not kept:
        message = f"every cell has {key_text(values)}, so it names no cell to compare to"
        raise _invalid(message, "name an axis that has several values")
    return kept


def _missing_baseline_error(
    values: CellKey, keys: Sequence[CellKey], rejected: Sequence[RejectedCell]
) -> MatrixInvalid:
    for cell in rejected:
        return _invalid(f"the baseline cell {key_text(cell.key)} cannot run: {cell.reason}", cell.hint)
    return _invalid(f"no cell has {key_text(values)}", "; ".join(_available_values(values, keys)))


def _available_values(values: CellKey, keys: Sequence[CellKey]) -> Iterator[str]:
    for axis, value in values.items():
        found = dict.fromkeys(value_text(key[axis]) for key in keys if axis in key)
        if value_text(value) not in found:
            yield f"`{axis}` is {' or '.join(found)} here"


def _pair(axis: str, value: SettingValue) -> str:
    return f"{axis} {value_text(value)}"


def _invalid(message: str, hint: str) -> MatrixInvalid:
    return matrix_invalid([SpecProblem(path=("baseline",), message=message, hint=hint)])
