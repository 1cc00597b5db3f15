"""Names and values that a matrix may use on this farm, and problems with others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, closest_name, name_hint
from farm.core.matrices.matrix import CellKey, KnownHarness, KnownHarnesses, KnownVariant
from farm.core.models.variant import (
    BACKEND_AXIS,
    HARNESS_AXIS,
    VARIANT_AXES,
    Format,
    Precision,
    Recipe,
    is_precision,
    precision_hint,
)

_Path = tuple[str | int, ...]
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}
_NO_METRICS = "it prints no metrics besides the time; leave `metrics` out"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedValues:
    """The words of the harnesses of a matrix and of the registered variants."""

    harnesses: KnownHarnesses
    #: Known values of the axes that are not flags; a precision may be another word, of a file to come.
    words: Mapping[str, frozenset[str]]

    def checked(self, partial: CellKey, path: _Path) -> tuple[dict[str, SettingValue], list[SpecProblem]]:
        """Return values in the types of their axes, with the problems of the others.

        Where they name a harness, flags are its flags.
        """
        own = partial.get(HARNESS_AXIS)
        harnesses = [harness for harness in self.harnesses.all if own in (None, harness.name)]
        checked = {
            axis: self._checked(axis, value, (*path, axis), harnesses or self.harnesses.all)
            for axis, value in partial.items()
        }
        good = {axis: v for axis, v in checked.items() if not isinstance(v, SpecProblem)}
        return good, [v for v in checked.values() if isinstance(v, SpecProblem)]

    def check_flags(self, flags: CellKey, path: _Path) -> tuple[dict[str, SettingValue], list[SpecProblem]]:
        """Check values like `checked`, where only harness flags are valid."""
        misplaced = [
            SpecProblem(path=(*path, axis), message=f"`{axis}` is an axis", hint=_axis_hint(axis))
            for axis in flags
            if axis in self.words
        ]
        good, problems = self.checked({n: v for n, v in flags.items() if n not in self.words}, path)
        return good, misplaced + problems

    def check_metrics(self, names: Sequence[str]) -> Iterator[SpecProblem]:
        """Yield the problems of metrics that no harness of the matrix ever prints."""
        known = [name for harness in self.harnesses.all for name in harness.metrics]
        prefixes = tuple(name[:-1] for name in known if name.endswith("*"))
        for place, name in enumerate(names):
            if name not in known and not (prefixes and name.startswith(prefixes)):
                message = f"{self.harnesses.names} prints no metric `{name}`"
                hint = name_hint(name, known) or _NO_METRICS
                yield SpecProblem(path=("metrics", place), message=message, hint=hint)

    def check_value(self, axis: str, value: SettingValue, path: _Path) -> SettingValue | SpecProblem:
        """Return the value in the axis's type, or its problem with any harness that has the flag."""
        return self._checked(axis, value, path, self.harnesses.all)

    def _checked(
        self, axis: str, value: SettingValue, path: _Path, harnesses: Sequence[KnownHarness]
    ) -> SettingValue | SpecProblem:
        if axis in self.words:
            return self._word(axis, value, path)
        if of_each := [_flag(own, axis, value, path) for own in harnesses if axis in own.defaults]:
            return next((one for one in of_each if isinstance(one, SpecProblem)), of_each[0])
        names = ", ".join(harness.name for harness in harnesses)
        if axis in VARIANT_AXES:
            return SpecProblem(
                path=path, message=f"`{axis}` is about a model, and {names} runs none", hint="leave it out"
            )
        flags = [flag for harness in harnesses for flag in harness.defaults]
        return SpecProblem(
            path=path,
            message=f"`{axis}` is neither an axis nor a flag of {names}",
            hint=name_hint(axis, [*self.words, *flags]),
        )

    def _word(self, axis: str, value: SettingValue, path: _Path) -> SettingValue | SpecProblem:
        allowed = self.words[axis]
        if isinstance(value, str) and value in allowed:
            return value
        if axis == "precision":
            if is_precision(value):
                return value
            hint = precision_hint(str(value))
        elif axis == "model":
            hint = _model_hint(str(value), allowed)
        else:
            hint = name_hint(str(value), allowed)
        return SpecProblem(path=path, message=f"no {axis} `{value}`", hint=hint)


def _flag(harness: KnownHarness, flag: str, value: SettingValue, path: _Path) -> SettingValue | SpecProblem:
    default = harness.defaults[flag]
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        message = f"`{value}` is {_KINDS[type(value)]}, {flag} takes {_KINDS[type(default)]}"
        hint = "put it in quotes" if isinstance(default, str) else f"its default is `{default}`"
        return SpecProblem(path=path, message=message, hint=hint)
    least = harness.minimums.get(flag)
    if least is not None and not isinstance(value, str) and value < least:
        return SpecProblem(path=path, message=f"{flag} is {value}, at least {least}")
    most = harness.maximums.get(flag)
    if most is not None and not isinstance(value, str) and value > most:
        return SpecProblem(path=path, message=f"{flag} is {value}, at most {most}")
    choices = harness.choices.get(flag)
    if choices is not None and value not in choices:
        return SpecProblem(path=path, message=f"no {flag} `{value}`", hint=name_hint(str(value), choices))
    only = harness.sustained_settings.get(flag, value)
    if value != only:
        message = f"with {flag} `{value}` a process of {harness.name} works once and cannot be sustained"
        return SpecProblem(path=path, message=message, hint=f"use `{only}`, or leave `sustained` out")
    return value


def _axis_hint(axis: str) -> str:
    written = "harness: [...]" if axis == HARNESS_AXIS else f"axes: {axis}: ..."
    return f"write it as `{written}`"


def allowed_values(harnesses: KnownHarnesses, variants: Sequence[KnownVariant]) -> AllowedValues:
    """Return the values that are valid with some harnesses and the registered variants."""
    words = {
        HARNESS_AXIS: frozenset(harness.name for harness in harnesses.all),
        BACKEND_AXIS: frozenset(backend for harness in harnesses.all for backend in harness.backends),
    }
    return AllowedValues(
        harnesses=harnesses, words=words | (_variant_values(variants) if harnesses.needs_model else {})
    )


def _variant_values(variants: Sequence[KnownVariant]) -> dict[str, frozenset[str]]:
    recipes = [variant.manifest.recipe for variant in variants]
    plain = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
    words: dict[str, frozenset[str]] = {
        "model": frozenset(variant.manifest.model for variant in variants),
        "precision": frozenset(Precision),
        "format": frozenset(Format),
        "memory_format": frozenset(recipe.memory_format for recipe in [plain, *recipes]),
        "target": frozenset(recipe.target for recipe in [plain, *recipes]),
    }
    assert words.keys() == set(VARIANT_AXES)
    return words


def _model_hint(model: str, models: Collection[str]) -> str:
    """Return a hint: a misspelled model, or one that has not been built."""
    if close := closest_name(model, models):
        return f"did you mean `{close}`?"
    there = f"{name_hint(model, models)}; " if models else ""
    return f"{there}`farm variant build` and `farm variant add` register models"
