"""The cells that a matrix names, before anybody asks which of them can run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import MatrixProblem, matrix_invalid
from farm.core.errors import MatrixInvalid
from farm.core.matrices.allowed_values import Vocabulary
from farm.core.matrices.matrix import (
    MAX_CELLS,
    MAX_JOBS,
    MAX_KEYS,
    Key,
    KnownHarness,
    MatrixPlan,
    RejectedCell,
    Rejection,
    has_all,
    key_text,
    required_axes,
)
from farm.core.models.variant import BACKEND_AXIS, VARIANT_AXES, Format, Precision, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The parts of a plan that name axes and values, in the axes' types."""

    axes: Mapping[str, tuple[SettingValue, ...]]
    settings: Key
    include: tuple[Key, ...]
    exclude: tuple[Key, ...]
    baseline: Key | None


def grid(words: Words, harness: KnownHarness) -> tuple[list[Key], list[RejectedCell]]:
    """All keys of a matrix in order, those of `include` last, and those that a rule leaves out.

    Raises:
        MatrixInvalid: an `include` that does not say enough or adds a cell that is there already (be it left
            out), or an `exclude` that fits no cell.
    """
    kept, rejected = _split_excluded(_product(words, harness), words.exclude)
    included = _included(words, harness)
    _check_twice([*kept, *(cell.key for cell in rejected)], included)
    return [*kept, *included], rejected


def checked_words(plan: MatrixPlan, words: Vocabulary) -> Words:
    """The names and values of a plan, in the types of their axes.

    Raises:
        MatrixInvalid: tells everything that is wrong with them at once.
    """
    axes, wrong_axes = _checked_axes(plan, words)
    settings, wrong_settings = words.checked_flags(plan.settings, ("settings",))
    include, wrong_include = _checked_rules("include", plan.include, words)
    exclude, wrong_exclude = _checked_rules("exclude", plan.exclude, words)
    baseline, wrong_baseline = words.checked(plan.baseline or {}, ("baseline",))
    wrong_values = [*wrong_axes, *wrong_settings, *wrong_include, *wrong_exclude, *wrong_baseline]
    if problems := [*_structural_problems(plan, words.harness), *wrong_values]:
        raise matrix_invalid(problems)
    return Words(
        axes=axes,
        settings=settings,
        include=include,
        exclude=exclude,
        baseline=None if plan.baseline is None else baseline,
    )


def _checked_axes(
    plan: MatrixPlan, words: Vocabulary
) -> tuple[dict[str, tuple[SettingValue, ...]], list[MatrixProblem]]:
    axes: dict[str, tuple[SettingValue, ...]] = {}
    problems: dict[MatrixProblem, None] = {}
    for axis, values in plan.axes.items():
        found = [words.checked_value(axis, value, ("axes", axis)) for value in values]
        problems.update(dict.fromkeys(value for value in found if isinstance(value, MatrixProblem)))
        axes[axis] = tuple(value for value in found if not isinstance(value, MatrixProblem))
        if len(set(axes[axis])) < len(axes[axis]):
            problems[MatrixProblem(path=("axes", axis), message="a value is there twice")] = None
    return axes, list(problems)


def _checked_rules(
    part: str, rules: Sequence[Key], words: Vocabulary
) -> tuple[tuple[Key, ...], list[MatrixProblem]]:
    checked = [words.checked(rule, (part, number)) for number, rule in enumerate(rules)]
    return tuple(key for key, _ in checked), [problem for _, wrong in checked for problem in wrong]


def _structural_problems(plan: MatrixPlan, harness: KnownHarness) -> Iterator[MatrixProblem]:
    if plan.axes or not plan.include:
        for axis in required_axes(harness):
            if axis not in plan.axes:
                yield MatrixProblem(path=("axes",), message=f"`{axis}` is missing")
    for axis, values in plan.axes.items():
        if not values:
            yield MatrixProblem(path=("axes", axis), message="has no values")
    for flag in plan.settings:
        if flag in plan.axes and flag not in (*VARIANT_AXES, BACKEND_AXIS):
            hint = "keep it in one of the two"
            yield MatrixProblem(path=("settings", flag), message=f"`{flag}` is an axis too", hint=hint)
    if plan.aa and plan.baseline is None:
        hint = "add `baseline: {...}`, or leave `aa` out"
        yield MatrixProblem(path=("aa",), message="an A/A pair is a baseline and its twin", hint=hint)


def check_size(plan: MatrixPlan, words: Words, *, devices: int) -> None:
    """Refuse what is too much before anything is multiplied out.

    Raises:
        MatrixInvalid: more than `MAX_KEYS`, `MAX_CELLS` or `MAX_JOBS`, excluded cells and twins counted.
    """
    keys = math.prod(map(len, words.axes.values())) + len(words.include)
    cells = keys * devices * (2 if plan.aa else 1)
    jobs = cells * plan.rounds
    if cells > MAX_CELLS:
        raise _too_much("axes", f"{keys} keys on {devices} devices are {cells} cells, at most {MAX_CELLS}")
    if keys > MAX_KEYS:
        raise _too_much("axes", f"{keys} keys are more than a device may have cells, at most {MAX_KEYS}")
    if jobs > MAX_JOBS:
        raise _too_much(
            "rounds", f"{cells} cells in {plan.rounds} rounds are {jobs} jobs, at most {MAX_JOBS}"
        )


def _too_much(place: str, message: str) -> MatrixInvalid:
    hint = "use fewer values, devices or rounds, or submit several matrices"
    return matrix_invalid([MatrixProblem(path=(place,), message=message, hint=hint)])


def _axis_names(words: Words) -> list[str]:
    """All axes of the matrix, those that name a variant first, flags as they come."""
    used = dict.fromkeys(axis for key in [words.axes, *words.include] for axis in key)
    named = [axis for axis in (*VARIANT_AXES, BACKEND_AXIS) if axis in used]
    return named + [axis for axis in used if axis not in named]


def unsaid_values(words: Words, harness: KnownHarness) -> dict[str, SettingValue]:
    """What an axis is where a cell does not say."""
    plain = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
    recipe: Key = {"memory_format": plain.memory_format, "target": plain.target}
    return {**harness.defaults, **(recipe if harness.needs_model else {}), **words.settings}


def _product(words: Words, harness: KnownHarness) -> list[Key]:
    if not words.axes:
        return []
    fallbacks = unsaid_values(words, harness)
    names = _axis_names(words)
    choices = [words.axes[name] if name in words.axes else (fallbacks[name],) for name in names]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _included(words: Words, harness: KnownHarness) -> list[Key]:
    several = {axis for axis, values in words.axes.items() if len(values) > 1}
    single = {axis: values[0] for axis, values in words.axes.items() if len(values) == 1}
    fallbacks = {a: value for a, value in unsaid_values(words, harness).items() if a not in several}
    axes = _axis_names(words)
    names = tuple(dict.fromkeys((*required_axes(harness), *axes)))
    filled = [{**fallbacks, **single, **partial} for partial in words.include]
    lacking = [
        MatrixProblem(
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


def _split_excluded(keys: Sequence[Key], rules: Sequence[Key]) -> tuple[list[Key], list[RejectedCell]]:
    hits = [[number for number, rule in enumerate(rules) if has_all(key, rule)] for key in keys]
    used = {number for numbers in hits for number in numbers}
    if idle := [number for number in range(len(rules)) if number not in used]:
        raise matrix_invalid([_fits_nothing(number, rules[number]) for number in idle])
    kept = [key for key, numbers in zip(keys, hits, strict=True) if not numbers]
    left_out = [_excluded(key, numbers[0], rules) for key, numbers in zip(keys, hits, strict=True) if numbers]
    return kept, left_out


def _fits_nothing(number: int, rule: Key) -> MatrixProblem:
    return MatrixProblem(path=("exclude", number), message=f"no cell of the axes has {key_text(rule)}")


def _excluded(key: Key, number: int, rules: Sequence[Key]) -> RejectedCell:
    reason = f"exclude[{number}] leaves it out: {key_text(rules[number])}"
    return RejectedCell(key=key, rejection=Rejection.EXCLUDED, reason=reason)


def _check_twice(keys: Sequence[Key], included: Sequence[Key]) -> None:
    seen = {tuple(key.values()) for key in keys}
    for number, key in enumerate(included):
        if (identity := tuple(key.values())) in seen:
            message = f"the cell {key_text(key)} is there already"
            raise matrix_invalid([MatrixProblem(path=("include", number), message=message)])
        seen.add(identity)
