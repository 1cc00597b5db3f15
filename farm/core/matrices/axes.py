"""The cells that a matrix names, before anybody asks which of them can run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.errors import MatrixInvalid
from farm.core.matrices.allowed_values import AllowedValues
from farm.core.matrices.matrix import (
    MAX_CELLS,
    MAX_JOBS,
    MAX_KEYS,
    CellKey,
    KnownHarness,
    MatrixPlan,
    RejectedCell,
    RejectionKind,
    has_all,
    key_text,
    required_axes,
)
from farm.core.models.variant import BACKEND_AXIS, VARIANT_AXES, Format, Precision, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAxes:
    """The parts of a plan that name axes and values, in the axes' types."""

    axes: Mapping[str, tuple[SettingValue, ...]]
    settings: CellKey
    include: tuple[CellKey, ...]
    exclude: tuple[CellKey, ...]
    baseline: CellKey | None


def expand_axes(words: TypedAxes, harness: KnownHarness) -> tuple[list[CellKey], list[RejectedCell]]:
    """Return all keys of a matrix in order, those of `include` last, and the excluded ones.

    Raises:
        MatrixInvalid: an `include` that does not say enough or adds a cell that is there already (be it left
            out), or an `exclude` that fits no cell.
    """
    kept, rejected = _split_excluded(_product(words, harness), words.exclude)
    included = _included_cells(words, harness)
    _check_duplicates([*kept, *(cell.key for cell in rejected)], included)
    return [*kept, *included], rejected


def type_axes(plan: MatrixPlan, words: AllowedValues) -> TypedAxes:
    """Return the names and values of a plan in the types of their axes.

    Raises:
        MatrixInvalid: tells everything that is wrong with them at once.
    """
    axes, wrong_axes = _check_axes(plan, words)
    settings, wrong_settings = words.check_flags(plan.settings, ("settings",))
    include, wrong_include = _check_rules("include", plan.include, words)
    exclude, wrong_exclude = _check_rules("exclude", plan.exclude, words)
    baseline, wrong_baseline = words.checked(plan.baseline or {}, ("baseline",))
    wrong_values = [*wrong_axes, *wrong_settings, *wrong_include, *wrong_exclude, *wrong_baseline]
    if problems := [*_structural_problems(plan, words.harness), *wrong_values]:
        raise matrix_invalid(problems)
    return TypedAxes(
        axes=axes,
        settings=settings,
        include=include,
        exclude=exclude,
        baseline=None if plan.baseline is None else baseline,
    )


def _check_axes(
    plan: MatrixPlan, words: AllowedValues
) -> tuple[dict[str, tuple[SettingValue, ...]], list[SpecProblem]]:
    axes: dict[str, tuple[SettingValue, ...]] = {}
    problems: dict[SpecProblem, None] = {}
    for axis, values in plan.axes.items():
        found = [words.check_value(axis, value, ("axes", axis)) for value in values]
        problems.update(dict.fromkeys(value for value in found if isinstance(value, SpecProblem)))
        axes[axis] = tuple(value for value in found if not isinstance(value, SpecProblem))
        if len(set(axes[axis])) < len(axes[axis]):
            problems[SpecProblem(path=("axes", axis), message="a value is there twice")] = None
    return axes, list(problems)


def _check_rules(
    part: str, rules: Sequence[CellKey], words: AllowedValues
) -> tuple[tuple[CellKey, ...], list[SpecProblem]]:
    checked = [words.checked(rule, (part, number)) for number, rule in enumerate(rules)]
    return tuple(key for key, _ in checked), [problem for _, wrong in checked for problem in wrong]


def _structural_problems(plan: MatrixPlan, harness: KnownHarness) -> Iterator[SpecProblem]:
    if plan.axes or not plan.include:
        for axis in required_axes(harness):
            if axis not in plan.axes:
                yield SpecProblem(path=("axes",), message=f"`{axis}` is missing")
    for axis, values in plan.axes.items():
        if not values:
            yield SpecProblem(path=("axes", axis), message="has no values")
    for flag in plan.settings:
        if flag in plan.axes and flag not in (*VARIANT_AXES, BACKEND_AXIS):
            hint = "keep it in one of the two"
            yield SpecProblem(path=("settings", flag), message=f"`{flag}` is an axis too", hint=hint)
    if plan.aa and plan.baseline is None:
        hint = "add `baseline: {...}`, or leave `aa` out"
        yield SpecProblem(path=("aa",), message="an A/A pair is a baseline and its twin", hint=hint)


def check_size(plan: MatrixPlan, words: TypedAxes, *, devices: int) -> None:
    """Refuse what is too much before anything is multiplied out.

    Raises:
        MatrixInvalid: more than `MAX_KEYS`, `MAX_CELLS` or `MAX_JOBS`, excluded cells and twins counted.
    """
    keys = math.prod(map(len, words.axes.values())) + len(words.include)
    cells = keys * devices * (2 if plan.aa else 1)
    jobs = cells * plan.rounds
    if cells > MAX_CELLS:
        raise _size_error("axes", f"{keys} keys on {devices} devices are {cells} cells, at most {MAX_CELLS}")
    if keys > MAX_KEYS:
        raise _size_error("axes", f"{keys} keys are more than a device may have cells, at most {MAX_KEYS}")
    if jobs > MAX_JOBS:
        raise _size_error(
            "rounds", f"{cells} cells in {plan.rounds} rounds are {jobs} jobs, at most {MAX_JOBS}"
        )


def _size_error(place: str, message: str) -> MatrixInvalid:
    hint = "use fewer values, devices or rounds, or submit several matrices"
    return matrix_invalid([SpecProblem(path=(place,), message=message, hint=hint)])


def _axis_names(words: TypedAxes) -> list[str]:
    """Return all axes of the matrix, those that name a variant first, then flags in their order."""
    used = dict.fromkeys(axis for key in [words.axes, *words.include] for axis in key)
    named = [axis for axis in (*VARIANT_AXES, BACKEND_AXIS) if axis in used]
    return named + [axis for axis in used if axis not in named]


def default_axis_values(words: TypedAxes, harness: KnownHarness) -> dict[str, SettingValue]:
    """Return the value of each axis where a cell does not give one."""
    plain = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
    recipe: CellKey = {"memory_format": plain.memory_format, "target": plain.target}
    return {**harness.defaults, **(recipe if harness.needs_model else {}), **words.settings}


def _product(words: TypedAxes, harness: KnownHarness) -> list[CellKey]:
    if not words.axes:
        return []
    fallbacks = default_axis_values(words, harness)
    names = _axis_names(words)
    choices = [words.axes[name] if name in words.axes else (fallbacks[name],) for name in names]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _included_cells(words: TypedAxes, harness: KnownHarness) -> list[CellKey]:
    several = {axis for axis, values in words.axes.items() if len(values) > 1}
    single = {axis: values[0] for axis, values in words.axes.items() if len(values) == 1}
    fallbacks = {a: value for a, value in default_axis_values(words, harness).items() if a not in several}
    axes = _axis_names(words)
    names = tuple(dict.fromkeys((*required_axes(harness), *axes)))
    filled = [{**fallbacks, **single, **partial} for partial in words.include]
    lacking = [
        SpecProblem(
            path=("include", number),
            message=f"lacks {', '.join(f'`{name}`' for name in names if name not in known)}",
            hint="an axis may be left out when it has a single value",
        )
        for number, known in enumerate(filled)
        if not known.keys() >= set(names)
    ]
    if lacking:
        raise matrix_invalid(lacking)
    return [{axis: known[axis] for axis in axes} for known in filled]


def _split_excluded(
    keys: Sequence[CellKey], rules: Sequence[CellKey]
) -> tuple[list[CellKey], list[RejectedCell]]:
    hits = [[number for number, rule in enumerate(rules) if has_all(key, rule)] for key in keys]
    used = {number for numbers in hits for number in numbers}
    if idle := [number for number in range(len(rules)) if number not in used]:
        raise matrix_invalid([_unmatched_rule(number, rules[number]) for number in idle])
    kept = [key for key, numbers in zip(keys, hits, strict=True) if not numbers]
    left_out = [
        _excluded_cell(key, numbers[0], rules) for key, numbers in zip(keys, hits, strict=True) if numbers
    ]
    return kept, left_out


def _unmatched_rule(number: int, rule: CellKey) -> SpecProblem:
    return SpecProblem(path=("exclude", number), message=f"no cell of the axes has {key_text(rule)}")


def _excluded_cell(key: CellKey, number: int, rules: Sequence[CellKey]) -> RejectedCell:
    reason = f"exclude[{number}] leaves it out: {key_text(rules[number])}"
    return RejectedCell(key=key, rejection=RejectionKind.EXCLUDED, reason=reason)


def _check_duplicates(keys: Sequence[CellKey], included: Sequence[CellKey]) -> None:
    seen = {tuple(key.values()) for key in keys}
    for number, key in enumerate(included):
        if (identity := tuple(key.values())) in seen:
            message = f"the cell {key_text(key)} is there already"
            raise matrix_invalid([SpecProblem(path=("include", number), message=message)])
        seen.add(identity)
