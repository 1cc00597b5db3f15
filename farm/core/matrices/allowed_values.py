"""Which names and values a matrix may use on this farm, and what is wrong with the others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import MatrixProblem, close_name, name_hint
from farm.core.matrices.matrix import Key, KnownHarness, KnownVariant
from farm.core.models.variant import BACKEND_AXIS, VARIANT_AXES, Format, Precision, Recipe

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words of one harness and the registered variants."""

    harness: KnownHarness
    #: Known values of the axes that are not flags.
    words: Mapping[str, frozenset[str]]

    def checked(self, partial: Key, path: _Path) -> tuple[dict[str, SettingValue], list[MatrixProblem]]:
        """Values in the types of their axes, with what is wrong about the others."""
        found = {axis: self.checked_value(axis, value, (*path, axis)) for axis, value in partial.items()}
        good = {axis: v for axis, v in found.items() if not isinstance(v, MatrixProblem)}
        return good, [v for v in found.values() if isinstance(v, MatrixProblem)]

    def checked_flags(self, flags: Key, path: _Path) -> tuple[dict[str, SettingValue], list[MatrixProblem]]:
        """Like `checked`, where only harness flags make sense."""
        misplaced = [
            MatrixProblem(
                path=(*path, axis), message=f"`{axis}` is an axis", hint=f"write it as `axes: {axis}: ...`"
            )
            for axis in flags
            if axis in self.words
        ]
        good, problems = self.checked({n: v for n, v in flags.items() if n not in self.words}, path)
        return good, misplaced + problems

    def checked_value(self, axis: str, value: SettingValue, path: _Path) -> SettingValue | MatrixProblem:
        """The value in the axis's type, or what is wrong with it."""
        if axis in self.words:
            return self._word(axis, value, path)
        if axis in self.harness.defaults:
            return self._flag(axis, value, path)
        if axis in VARIANT_AXES:
            name = self.harness.name
            return MatrixProblem(
                path=path, message=f"`{axis}` is about a model, and {name} runs none", hint="leave it out"
            )
        return MatrixProblem(
            path=path,
            message=f"`{axis}` is neither an axis nor a flag of {self.harness.name}",
            hint=name_hint(axis, [*self.words, *self.harness.defaults]),
        )

    def _word(self, axis: str, value: SettingValue, path: _Path) -> SettingValue | MatrixProblem:
        known = self.words[axis]
        if isinstance(value, str) and value in known:
            return value
        if axis == "model":
            hint = _model_hint(str(value), known)
        else:
            hint = name_hint(str(value), known)
        return MatrixProblem(path=path, message=f"no {axis} `{value}`", hint=hint)

    def _flag(self, flag: str, value: SettingValue, path: _Path) -> SettingValue | MatrixProblem:
        default = self.harness.defaults[flag]
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            message = f"`{value}` is {_kind(value)}, {flag} takes {_kind(default)}"
            hint = "put it in quotes" if isinstance(default, str) else f"its default is `{default}`"
            return MatrixProblem(path=path, message=message, hint=hint)
        least = self.harness.minimums.get(flag)
        if least is not None and not isinstance(value, str) and value < least:
            return MatrixProblem(path=path, message=f"{flag} is {value}, at least {least}")
        return value


def vocabulary(harness: KnownHarness, variants: Sequence[KnownVariant]) -> Vocabulary:
    """The words that make sense with a harness and the registered variants."""
    words = {BACKEND_AXIS: frozenset(harness.backends)}
    return Vocabulary(harness=harness, words=words | (_of_variants(variants) if harness.needs_model else {}))


def _of_variants(variants: Sequence[KnownVariant]) -> dict[str, frozenset[str]]:
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


def _model_hint(model: str, known: Collection[str]) -> str:
    """A slip of the pen, or else a model that nobody has built yet."""
    if close := close_name(model, known):
        return f"did you mean `{close}`?"
    there = f"{name_hint(model, known)}; " if known else ""
    return f"{there}`farm variants build` and `farm variants add` register models"


def _kind(value: SettingValue) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a text"
