"""The cells that a matrix names, whether or not they can run, and the baseline of each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.errors import MatrixInvalid
from farm.core.matrices.allowed_values import AllowedValues
from farm.core.matrices.blocks import BLOCK_CANDIDATES
from farm.core.matrices.matrix import (
    MAX_CELLS,
    MAX_JOBS,
    MAX_KEYS,
    CellKey,
    KnownHarness,
    KnownHarnesses,
    MatrixSpec,
    RejectedCell,
    RejectionKind,
    has_all,
    key_text,
    required_axes,
    value_text,
    varying_axes,
)
from farm.core.models.variant import (
    BACKEND_AXIS,
    HARNESS_AXIS,
    VARIANT_AXES,
    Format,
    Precision,
    Recipe,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAxes:
    """The parts of a spec that name axes and values, in the axes' types."""

    axes: Mapping[str, tuple[SettingValue, ...]]
    settings: CellKey
    include: tuple[CellKey, ...]
    exclude: tuple[CellKey, ...]
    baseline: CellKey | None


class AxisDefaults:
    """The value of each axis where a cell does not give one: those of the cell's harness.

    A flag that its harness does not have gets the value of a harness that has it: cells have the same axes.
    """

    def __init__(self, words: TypedAxes, harnesses: KnownHarnesses) -> None:
        """Prepare those of the harnesses of a matrix."""
        plain = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
        recipe: CellKey = {"memory_format": plain.memory_format, "target": plain.target}
        of_any = {flag: value for harness in harnesses.all for flag, value in harness.defaults.items()}
        of_any |= recipe if harnesses.needs_model else {}
        self._harnesses = harnesses
        self._by_name: dict[str, CellKey] = {
            harness.name: {**of_any, **harness.defaults, **words.settings} for harness in harnesses.all
        }

    def of(self, key: CellKey) -> CellKey:
        """Return the values for a cell, of which just the harness has to be known."""
        return self._by_name[self._harnesses.of(key).name]

    def unknown_flag(self, key: CellKey) -> str | None:
        """Return a flag that a cell changes, and that its harness does not have."""
        own, defaults = self._harnesses.of(key).defaults, self.of(key)
        changed = (axis for axis in key if axis in defaults and key[axis] != defaults[axis])
        return next((axis for axis in changed if axis not in own and self._harnesses.with_flag(axis)), None)


def expand_axes(
    words: TypedAxes, harnesses: KnownHarnesses, defaults: AxisDefaults
) -> tuple[list[CellKey], list[RejectedCell]]:
    """Return all keys of a matrix in order, those of `include` last, and the excluded ones.

    Raises:
        MatrixInvalid: an `include` that does not say enough or adds a cell that is there already (be it left
            out), or an `exclude` that fits no cell.
    """
    keys, rejected = _split_excluded(_product(words, defaults), words.exclude)
    included = _included_cells(words, harnesses, defaults)
    _check_duplicates([*keys, *(cell.key for cell in rejected)], included)
    return [*keys, *included], rejected


def type_axes(spec: MatrixSpec, words: AllowedValues) -> TypedAxes:
    """Return the names and values of a spec in the types of their axes.

    Raises:
        MatrixInvalid: tells everything that is wrong with them at once.
    """
    axes, wrong_axes = _check_axes(spec, words)
    if spec.has_harness_axis:
        axes = {HARNESS_AXIS: (spec.harness,) if isinstance(spec.harness, str) else spec.harness, **axes}
    settings, wrong_settings = words.check_flags(spec.settings, ("settings",))
    include, wrong_include = _check_rules("include", spec.include, words)
    exclude, wrong_exclude = _check_rules("exclude", spec.exclude, words)
    baseline, wrong_baseline = words.checked(spec.baseline or {}, ("baseline",))
    wrong_values = [*wrong_axes, *wrong_settings, *wrong_include, *wrong_exclude, *wrong_baseline]
    wrong_values += words.check_metrics(spec.metrics)
    if problems := [*_structural_problems(spec, words.harnesses), *wrong_values]:
        raise matrix_invalid(problems)
    return TypedAxes(
        axes=axes,
        settings=settings,
        include=include,
        exclude=exclude,
        baseline=None if spec.baseline is None else baseline,
    )


def _check_axes(
    spec: MatrixSpec, words: AllowedValues
) -> tuple[dict[str, tuple[SettingValue, ...]], list[SpecProblem]]:
    axes: dict[str, tuple[SettingValue, ...]] = {}
    problems: dict[SpecProblem, None] = {}
    for axis, values in spec.axes.items():
        checked = [words.check_value(axis, value, ("axes", axis)) for value in values]
        problems.update(dict.fromkeys(value for value in checked if isinstance(value, SpecProblem)))
        axes[axis] = tuple(value for value in checked if not isinstance(value, SpecProblem))
        if len(set(axes[axis])) < len(axes[axis]):
            problems[SpecProblem(path=("axes", axis), message="a value is there twice")] = None
    return axes, list(problems)


def _check_rules(
    part: str, rules: Sequence[CellKey], words: AllowedValues
) -> tuple[tuple[CellKey, ...], list[SpecProblem]]:
    checked = [words.checked(rule, (part, number)) for number, rule in enumerate(rules)]
    return tuple(key for key, _ in checked), [problem for _, wrong in checked for problem in wrong]


def _structural_problems(spec: MatrixSpec, harnesses: KnownHarnesses) -> Iterator[SpecProblem]:
    if HARNESS_AXIS in spec.axes:
        hint = "write it as `harness: [...]`"
        yield SpecProblem(path=("axes", HARNESS_AXIS), message="harnesses stand outside of `axes`", hint=hint)
    if spec.axes or not spec.include:
        for axis in required_axes(harnesses):
            if axis not in spec.axes:
                yield SpecProblem(path=("axes",), message=f"`{axis}` is missing")
    for axis, values in spec.axes.items():
        if not values:
            yield SpecProblem(path=("axes", axis), message="has no values")
    for flag in spec.settings:
        if flag in spec.axes and flag not in (HARNESS_AXIS, *VARIANT_AXES, BACKEND_AXIS):
            hint = "keep it in one of the two"
            yield SpecProblem(path=("settings", flag), message=f"`{flag}` is an axis too", hint=hint)
    without, those_with = _split_by_model(harnesses)
    if without and those_with:
        message = f"{without[0].name} runs no model, and {those_with[0].name} needs one"
        yield SpecProblem(path=("harness",), message=message, hint="submit a matrix of each kind")
    if spec.inputs and not harnesses.needs_model:
        message = f"{harnesses.names} runs no model, so nothing has inputs"
        yield SpecProblem(path=("inputs",), message=message, hint="leave it out")
    if spec.aa and spec.baseline is None:
        hint = "add `baseline: {...}`, or leave `aa` out"
        yield SpecProblem(path=("aa",), message="an A/A pair is a baseline and its replica", hint=hint)


def _split_by_model(harnesses: KnownHarnesses) -> tuple[list[KnownHarness], list[KnownHarness]]:
    """Return the harnesses that run no model, and those that need one."""
    without = [harness for harness in harnesses.all if not harness.needs_model]
    return without, [harness for harness in harnesses.all if harness.needs_model]


def check_size(spec: MatrixSpec, words: TypedAxes, *, devices: int) -> None:
    """Refuse what is too much before anything is multiplied out.

    Raises:
        MatrixInvalid: more than `MAX_KEYS`, `MAX_CELLS` or `MAX_JOBS`, with excluded cells and replicas.
    """
    keys = math.prod(map(len, words.axes.values())) + len(words.include)
    cells = keys * devices * (2 if spec.aa else 1)
    # A baseline starts once in each of its blocks: at most so often, whatever the cells are compared to.
    further = 0 if spec.baseline is None else cells // BLOCK_CANDIDATES
    jobs = (cells + further) * spec.round_range[1]
    if cells > MAX_CELLS:
        raise _size_error("axes", f"{keys} keys on {devices} devices are {cells} cells, at most {MAX_CELLS}")
    if keys > MAX_KEYS:
        raise _size_error("axes", f"{keys} keys are more than a device may have cells, at most {MAX_KEYS}")
    if jobs > MAX_JOBS:
        raise _size_error(
            "rounds",
            f"{cells} cells in {spec.round_range[1]} rounds are up to {jobs} jobs, at most {MAX_JOBS}",
        )


def _size_error(place: str, message: str) -> MatrixInvalid:
    hint = "use fewer values, devices or rounds, or submit several matrices"
    return matrix_invalid([SpecProblem(path=(place,), message=message, hint=hint)])


def _axis_names(words: TypedAxes) -> list[str]:
    """Return all axes of the matrix: the harness, what names a variant, the backend, flags in their order."""
    used = dict.fromkeys(axis for key in [words.axes, *words.include] for axis in key)
    named = [axis for axis in (HARNESS_AXIS, *VARIANT_AXES, BACKEND_AXIS) if axis in used]
    return named + [axis for axis in used if axis not in named]


def _product(words: TypedAxes, defaults: AxisDefaults) -> list[CellKey]:
    if not words.axes.keys() - {HARNESS_AXIS}:
        return []
    names = _axis_names(words)
    given = [name for name in names if name in words.axes]
    keys = (
        dict(zip(given, values, strict=True)) for values in product(*(words.axes[name] for name in given))
    )
    return [{name: key[name] if name in key else defaults.of(key)[name] for name in names} for key in keys]


def _included_cells(words: TypedAxes, harnesses: KnownHarnesses, defaults: AxisDefaults) -> list[CellKey]:
    several = {axis for axis, values in words.axes.items() if len(values) > 1}
    single = {axis: values[0] for axis, values in words.axes.items() if len(values) == 1}
    axes = _axis_names(words)
    names = tuple(dict.fromkeys((*required_axes(harnesses), *axes)))
    filled = [
        {axis: value for axis, value in defaults.of({**single, **partial}).items() if axis not in several}
        | {**single, **partial}
        for partial in words.include
    ]
    incomplete = [
        SpecProblem(
            path=("include", number),
            message=f"is missing {', '.join(f'`{name}`' for name in names if name not in key)}",
            hint="an axis may be left out when it has a single value",
        )
        for number, key in enumerate(filled)
        if not key.keys() >= set(names)
    ]
    if incomplete:
        raise matrix_invalid(incomplete)
    return [{axis: key[axis] for axis in axes} for key in filled]


def _split_excluded(
    keys: Sequence[CellKey], rules: Sequence[CellKey]
) -> tuple[list[CellKey], list[RejectedCell]]:
    hits = [[number for number, rule in enumerate(rules) if has_all(key, rule)] for key in keys]
    used = {number for numbers in hits for number in numbers}
    unmatched = [
        SpecProblem(path=("exclude", number), message=f"no cell of the axes has {key_text(rule)}")
        for number, rule in enumerate(rules)
        if number not in used
    ]
    if unmatched:
        raise matrix_invalid(unmatched)
    remaining = [key for key, numbers in zip(keys, hits, strict=True) if not numbers]
    left_out = [
        RejectedCell(
            key=key,
            rejection=RejectionKind.EXCLUDED,
            reason=f"exclude[{numbers[0]}] leaves it out: {key_text(rules[numbers[0]])}",
        )
        for key, numbers in zip(keys, hits, strict=True)
        if numbers
    ]
    return remaining, left_out


def _check_duplicates(keys: Sequence[CellKey], included: Sequence[CellKey]) -> None:
    seen = {tuple(key.values()) for key in keys}
    for number, key in enumerate(included):
        if (identity := tuple(key.values())) in seen:
            message = f"the cell {key_text(key)} is there already"
            raise matrix_invalid([SpecProblem(path=("include", number), message=message)])
        seen.add(identity)


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
    words: TypedAxes,
    harnesses: KnownHarnesses,
    defaults: AxisDefaults,
    runnable: Sequence[CellKey],
    rejected: Sequence[RejectedCell],
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
    first = harnesses.all[0]
    fixed = {HARNESS_AXIS: first.name, **defaults.of({HARNESS_AXIS: first.name})}
    values = _axis_values_of(words.baseline, keys, fixed)
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
        message = "; ".join(f"all cells have {axis} {value_text(fixed[axis])}" for axis in wrong)
        raise _invalid(
            f"no cell has {key_text(values)}: {message}", f"make `{wrong[0]}` an axis, or leave it out"
        )
    selected = {axis: value for axis, value in values.items() if axis in axes}
    if not selected:
        message = f"every cell has {key_text(values)}, so it names no cell to compare to"
        raise _invalid(message, "name an axis that has several values")
    return selected


def _missing_baseline_error(
    values: CellKey, keys: Sequence[CellKey], rejected: Sequence[RejectedCell]
) -> MatrixInvalid:
    for cell in rejected:
        return _invalid(f"the baseline cell {key_text(cell.key)} cannot run: {cell.reason}", cell.hint)
    return _invalid(f"no cell has {key_text(values)}", "; ".join(_available_values(values, keys)))


def _available_values(values: CellKey, keys: Sequence[CellKey]) -> Iterator[str]:
    for axis, value in values.items():
        texts = dict.fromkeys(value_text(key[axis]) for key in keys if axis in key)
        if value_text(value) not in texts:
            yield f"`{axis}` is {' or '.join(texts)} here"


def _invalid(message: str, hint: str) -> MatrixInvalid:
    return matrix_invalid([SpecProblem(path=("baseline",), message=message, hint=hint)])
