"""A part of a stored matrix as a matrix of its own: the same files, settings and baseline, on one device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farm.core.base.ids import DeviceId, VariantId
from farm.core.base.setting_values import SettingValue, non_default_settings
from farm.core.matrices.matrix import CellAssignment, CellKey, Expansion, MatrixSpec, Slot
from farm.core.models.variant import BACKEND_AXIS, HARNESS_AXIS, Recipe

#: Of `Recipe`: a matrix that does not name these axes means them.
_PLAIN_AXES = {"memory_format": "contiguous", "target": "cpu"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCell:
    """A stored cell that is to be measured again."""

    #: Index in its matrix.
    index: int
    #: None, or of a cell that is not repeated, where it is compared with none.
    baseline_index: int | None
    harness: str
    #: None, as model and recipe are, where the harness runs no model.
    variant_id: VariantId | None
    model: str | None
    recipe: Recipe | None
    backend: str
    #: Complete.
    settings: CellKey
    #: 2 for the replica of an A/A pair.
    replica: int
    #: The program of the harness that it ran.
    program_id: int


def repeat_cells(
    spec: MatrixSpec,
    cells: Sequence[RepeatedCell],
    *,
    name: str,
    device_id: DeviceId,
    defaults: Mapping[str, Mapping[str, SettingValue]],
) -> tuple[MatrixSpec, Expansion]:
    """Return the matrix of stored cells of one device, and its expansion, which looks up nothing by name.

    Args:
        spec: of the matrix that the cells are of.
        cells: a baseline and what is compared with it, or one cell that is compared with none.
        name: of the new matrix.
        device_id: the device that runs it.
        defaults: by harness, of all its flags.
    """
    varying_flags = _varying_flags(cells)
    keys = [_key(cell, _named_axes(cells), varying_flags) for cell in cells]
    if len({cell.harness for cell in cells}) > 1:
        keys = [{HARNESS_AXIS: cell.harness, **key} for cell, key in zip(cells, keys, strict=True)]
    number_by_index: dict[int | None, int] = {cell.index: number for number, cell in enumerate(cells)}
    baselines = {cell.baseline_index for cell in cells}
    slots = tuple(
        Slot(
            key=key,
            harness=cell.harness,
            variant_id=cell.variant_id,
            backend=cell.backend,
            settings=cell.settings,
            replica=cell.replica,
            baseline=number_by_index.get(cell.baseline_index),
            is_baseline=cell.index in baselines,
            program_id=cell.program_id,
        )
        for cell, key in zip(cells, keys, strict=True)
    )
    assignment = CellAssignment(device_id=device_id, first=0, slots=range(len(slots)))
    expansion = Expansion(slots=slots, assignments=(assignment,), rejected=())
    changed = [non_default_settings(cell.settings, defaults[cell.harness]) for cell in cells]
    repeated = replace(
        _named_spec(spec, cells, keys),
        name=name,
        settings={flag: value for own in changed for flag, value in own.items() if flag not in varying_flags},
        exclude=(),
        devices=({"device_id": (device_id,)},),
        seed=None,
    )
    return repeated, expansion


def _named_spec(spec: MatrixSpec, cells: Sequence[RepeatedCell], keys: Sequence[CellKey]) -> MatrixSpec:
    """Return a spec whose axes name the cells; of a file that was replaced, its name means the new one."""
    first, others = keys[0], [key for key, cell in zip(keys, cells, strict=True) if cell.replica == 1][1:]
    axes: dict[str, tuple[SettingValue, ...]] = {
        axis: (value,) for axis, value in first.items() if axis != HARNESS_AXIS
    }
    differing = {axis for key in others for axis, value in key.items() if first.get(axis) != value}
    is_compared = len(cells) > 1
    baseline = {axis: first[axis] for axis in first if axis in differing} or {BACKEND_AXIS: cells[0].backend}
    rounds = spec.rounds if is_compared or isinstance(spec.rounds, int) else spec.rounds.at_least
    return replace(
        spec,
        harness=cells[0].harness,
        axes=axes,
        include=tuple({axis: key[axis] for axis in key if axis in differing} for key in others),
        baseline=baseline if is_compared else None,
        aa=any(cell.replica > 1 for cell in cells),
        rounds=rounds,
    )


def _named_axes(cells: Sequence[RepeatedCell]) -> tuple[str, ...]:
    """Return the axes of a recipe that a matrix has to name: without those that are plain in all cells."""
    recipes = [cell.recipe for cell in cells if cell.recipe is not None]
    return tuple(
        axis
        for axis, plain in _PLAIN_AXES.items()
        if any(getattr(recipe, axis) != plain for recipe in recipes)
    )


def _varying_flags(cells: Sequence[RepeatedCell]) -> frozenset[str]:
    flags = {flag for cell in cells for flag in cell.settings}
    return frozenset(
        flag for flag in flags if len({cell.settings[flag] for cell in cells if flag in cell.settings}) > 1
    )


def _key(cell: RepeatedCell, axes: Sequence[str], flags: frozenset[str]) -> CellKey:
    """Return the axes of a cell, in the order of a matrix."""
    key: dict[str, SettingValue] = {}
    if cell.model is not None and cell.recipe is not None:
        recipe = cell.recipe
        key = {"model": cell.model, "precision": str(recipe.precision), "format": str(recipe.format)}
        key |= {axis: getattr(recipe, axis) for axis in axes}
    key[BACKEND_AXIS] = cell.backend
    return key | {flag: value for flag, value in cell.settings.items() if flag in flags}
