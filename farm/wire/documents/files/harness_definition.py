"""A generic harness's definition as its author writes it, checked before it is stored."""

import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from farm.core.base.json_path import json_path
from farm.core.base.safe_regex import pattern_problem
from farm.core.base.spec_errors import SpecProblem, invalid_document
from farm.core.errors import HarnessInvalid
from farm.core.programs.definition import (
    ACCELERATORS,
    MODEL_PLACEHOLDER,
    ROOT,
    BackendDefinition,
    Definition,
    DeviationLocator,
    FlagDefinition,
    MetricLocator,
    OutputStream,
    TimeLocator,
    ValueLocator,
    broken_rules,
    time_unit,
    uses_placeholder,
)
from farm.core.runs.measurement import Better
from farm.wire.validation_errors import problems_of
from farm.wire.yaml_positions import YamlNotPlain, line_of, load_plain

_FLAG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DECLARED: Literal["declared"] = "declared"
#: The unit of a deviation that is printed as a part of its mean.
PERCENT: Literal["%"] = "%"


def _no_problem(problem: str | None) -> None:
    if problem is not None:
        raise PydanticCustomError("definition_value", "{problem}", {"problem": problem})


def _number_pattern(text: str) -> str:
    _no_problem(pattern_problem(text, groups=1))
    return text


def _output_pattern(text: str) -> str:
    _no_problem(None if text == DECLARED else pattern_problem(text))
    return text


def _path(text: str) -> str:
    try:
        json_path(text)
    except ValueError as error:
        _no_problem(str(error))
    return text


def _time_unit(text: str) -> str:
    try:
        time_unit(text)
    except ValueError as error:
        _no_problem(str(error))
    return text


def _deviation_unit(text: str) -> str:
    return text if text == PERCENT else _time_unit(text)


def _flag_name(text: str) -> str:
    is_name = _FLAG_NAME.fullmatch(text)
    _no_problem(None if is_name else f"`{text[:80]}` is no flag's name: letters, digits and _, 64 at most")
    return text


def _name(text: str) -> str:
    is_name = _NAME.fullmatch(text)
    _no_problem(
        None if is_name else f"`{text[:80]}` is no name: letters, digits, `.`, `_` and `-`, 64 at most"
    )
    return text


def _words(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise PydanticCustomError("definition_value", "a quotation has no end") from error


NumberPattern = Annotated[str, AfterValidator(_number_pattern)]
OutputPattern = Annotated[str, AfterValidator(_output_pattern)]
Path = Annotated[str, AfterValidator(_path)]
Text = Annotated[str, Field(max_length=500)]
Word = Annotated[str, Field(max_length=1000)]
Words = Annotated[tuple[Word, ...], BeforeValidator(_words), Field(max_length=200, strict=False)]
#: As matrices and placeholders can spell it.
FlagName = Annotated[str, AfterValidator(_flag_name)]
Name = Annotated[str, AfterValidator(_name)]
Unit = Annotated[str, Field(min_length=1, max_length=32)]
TimeUnitName = Annotated[Unit, AfterValidator(_time_unit)]
DeviationUnitName = Annotated[Unit, AfterValidator(_deviation_unit)]


class _DefinitionPart(BaseModel):
    """A part of a definition. Strict: a number in quotes is a mistake, not a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, serialize_by_alias=True)


class LocatorSpec(_DefinitionPart):
    """The location of numbers in the output: exactly one field is set."""

    pattern: NumberPattern | None = None
    json_path: Path | None = Field(None, alias="json")

    def place(self) -> ValueLocator:
        """Return the locator of the core."""
        return ValueLocator(pattern=self.pattern or "", json=self.json_path or "")


class TimeSpec(LocatorSpec):
    """The location of times or rates."""

    unit: TimeUnitName


class DeviationSpec(LocatorSpec):
    """The location of the standard deviation behind a mean: a time, a rate, or percent of the mean."""

    unit: DeviationUnitName


class MetricSpec(LocatorSpec):
    """The location of a further metric, and the direction in which it improves."""

    unit: Unit
    better: Annotated[Better, Field(strict=False)]


class FlagSpec(_DefinitionPart):
    """A setting that matrices may name; the type of its default is its type."""

    default: bool | int | Annotated[float, Field(allow_inf_nan=False)] | Text
    help: Text = ""
    minimum: int | None = None
    split: bool = False


class BackendSpec(_DefinitionPart):
    """The arguments that request a backend, and the patterns that show that it ran."""

    arguments: Words = ()
    accelerator: Literal["cpu", "gpu", "npu", "dsp"] | None = None
    proof: OutputPattern | None = None
    fallback: OutputPattern | None = None


def _is_unset(value: object) -> bool:
    return value is None


class HarnessDefinition(_DefinitionPart):
    """A definition as its author writes it, and as it is kept with the program."""

    name: Name
    arguments: Words = ()
    needs_model: bool | None = None
    flags: dict[FlagName, FlagSpec] = Field(default_factory=dict, max_length=64)
    backends: dict[Name, BackendSpec] = Field(
        default_factory=lambda: {"cpu": BackendSpec()}, min_length=1, max_length=32
    )
    samples: TimeSpec | None = None
    value: TimeSpec | None = None
    # Left out where unset: a program's digest is also of its definition, and some are older than these keys.
    deviation: DeviationSpec | None = Field(None, exclude_if=_is_unset)
    minimum: TimeSpec | None = Field(None, exclude_if=_is_unset)
    maximum: TimeSpec | None = Field(None, exclude_if=_is_unset)
    iterations_flag: FlagName | None = None
    metrics: dict[Name, MetricSpec] = Field(default_factory=dict, max_length=64)
    stream: Annotated[OutputStream, Field(strict=False)] = OutputStream.STDOUT
    success_exit_codes: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        (0,), min_length=1, max_length=64, strict=False
    )
    unsupported: tuple[OutputPattern, ...] = Field((), max_length=64, strict=False)
    clock_covers: Text = ""

    def definition(self) -> Definition:
        """Return the definition of the core."""
        return Definition(
            name=self.name,
            arguments=self.arguments,
            needs_model=self._needs_model(),
            flags={name: FlagDefinition(**dict(flag)) for name, flag in self.flags.items()},
            backends={name: _backend(name, spec) for name, spec in self.backends.items()},
            samples=_time_place(self.samples),
            value=_time_place(self.value),
            deviation=_deviation_place(self.deviation),
            minimum=_time_place(self.minimum),
            maximum=_time_place(self.maximum),
            iterations_flag=self.iterations_flag,
            metrics={
                name: MetricLocator(place=spec.place(), unit=spec.unit, better=spec.better)
                for name, spec in self.metrics.items()
            },
            stream=self.stream,
            success_exit_codes=self.success_exit_codes,
            unsupported=self.unsupported,
            clock_covers=self.clock_covers,
        )

    def _needs_model(self) -> bool:
        if self.needs_model is not None:
            return self.needs_model
        words = [*self.arguments, *(word for backend in self.backends.values() for word in backend.arguments)]
        return any(uses_placeholder(word, MODEL_PLACEHOLDER) for word in words)


def harness_definition(data: object, *, text: str | None = None) -> HarnessDefinition:
    """Check a definition.

    Args:
        data: what JSON or `load_definition` gave.
        text: the YAML it came from, to name lines.

    Raises:
        HarnessInvalid: names the place of everything that is wrong, with close matches of unknown keys.
    """
    try:
        spec = HarnessDefinition.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error, data, known_keys=_known_keys, root=ROOT)
        raise _invalid(problems, text) from error
    if problems := list(broken_rules(spec.definition())):
        raise _invalid(problems, text)
    return spec


def definition_from_text(text: str) -> HarnessDefinition:
    """Read and check a definition file; raises like `harness_definition`."""
    try:
        data = load_plain(text, noun=ROOT)
    except YamlNotPlain as error:
        raise _invalid([SpecProblem(message=str(error), hint=error.hint, root=ROOT)], None) from error
    return harness_definition(data, text=text)


def _invalid(problems: Sequence[SpecProblem], text: str | None) -> HarnessInvalid:
    lines = [line_of(text, problem.path) for problem in problems] if text else []
    return invalid_document(HarnessInvalid, problems, lines)


def _known_keys(loc: tuple[str | int, ...]) -> Sequence[str]:
    """Return the keys that are valid next to the last part of `loc`."""
    match loc:
        case ("flags", _, _, *_):
            return _keys(FlagSpec)
        case ("backends", _, _, *_):
            return _keys(BackendSpec)
        case ("metrics", _, _, *_):
            return _keys(MetricSpec)
        case ("samples" | "value" | "deviation" | "minimum" | "maximum", _, *_):
            return _keys(TimeSpec)
        case _:
            return _keys(HarnessDefinition)


def _keys(part: type[_DefinitionPart]) -> list[str]:
    return [field.alias or name for name, field in part.model_fields.items()]


def _backend(name: str, spec: BackendSpec) -> BackendDefinition:
    is_declared = spec.proof == DECLARED
    return BackendDefinition(
        arguments=spec.arguments,
        accelerator=spec.accelerator or (name if name in ACCELERATORS else ""),
        proof="" if is_declared else spec.proof or "",
        fallback=spec.fallback or "",
        declared=is_declared,
    )


def _time_place(spec: TimeSpec | None) -> TimeLocator | None:
    return None if spec is None else TimeLocator(place=spec.place(), unit=time_unit(spec.unit))


def _deviation_place(spec: DeviationSpec | None) -> DeviationLocator | None:
    if spec is None:
        return None
    unit = None if spec.unit == PERCENT else time_unit(spec.unit)
    return DeviationLocator(place=spec.place(), unit=unit)
