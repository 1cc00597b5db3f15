"""A matrix at the edge: read from YAML or JSON, its shape and bounds checked before anything is looked up."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError

from farm.core.base.cpu_list import core_list, core_text
from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.base.units import share_of_percent
from farm.core.devices.condition import Gates, ThermalStatus, UnknownGatePolicy
from farm.core.devices.controls import Controls, CoreKind, Screen
from farm.core.devices.selector import SELECTOR_KEYS, Selector
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import MAX_ROUNDS, MatrixSpec
from farm.core.matrices.rounds import SequentialRounds
from farm.core.models.declared_inputs import declared_input, input_text
from farm.core.models.variant import MOST_INPUTS
from farm.core.runs.measurement import MIN_ROUNDS
from farm.wire.validation_errors import problems_of
from farm.wire.yaml_positions import YamlNotPlain, line_of, load_plain

CoreT = TypeVar("CoreT")

_MAX_VALUES = 1000
_MAX_TEXT_CHARS = 200
#: A flag may hold a whole command line.
_MAX_VALUE_CHARS = 4000
_DAY_S = 86_400.0
_MAX_SUSTAINED_S = 4 * 3600
#: No rounds make an interval narrower.
_LEAST_HALF_WIDTH = 0.0001


def _scalar(value: object) -> SettingValue:
    """Keep the types of YAML and JSON: `5` is no text and `true` no number."""
    if not isinstance(value, str | int | float | bool):
        raise PydanticCustomError("matrix_value", "not a text, a number, true or false")
    if isinstance(value, str) and not 0 < len(value) <= _MAX_VALUE_CHARS:
        raise PydanticCustomError("matrix_value", f"a text of 1 to {_MAX_VALUE_CHARS} characters is needed")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("matrix_value", "not a finite number")
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise PydanticCustomError("matrix_value", "the number is too large")
    return value


def _scalars(value: object) -> tuple[SettingValue, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if not 1 <= len(values) <= _MAX_VALUES:
        raise PydanticCustomError("matrix_value", f"1 to {_MAX_VALUES} values are needed")
    return tuple(_scalar(item) for item in values)


def _listed(value: object) -> object:
    """Accept one text for a list of one."""
    return (value,) if isinstance(value, str) else value


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise PydanticCustomError("matrix_value", f"`{twice[0]}` is there twice")
    return names


def _input(text: str) -> str:
    """Return an input in the farm's own form, so that the same one is always the same text."""
    try:
        return input_text(declared_input(text))
    except InvalidInput as error:
        raise PydanticCustomError("matrix_value", f"{error.message}; {error.hint}") from error


def _listed_selectors(value: object) -> object:
    if value == "all":
        return ({},)
    if not isinstance(value, Mapping | list | tuple):
        raise PydanticCustomError("matrix_value", "must be `all`, a selector, or a list of selectors")
    selectors = (value,) if isinstance(value, Mapping) else value
    if not selectors or any(selector == {} for selector in selectors):
        # Nothing was selected by it: `{tag: camera}` with its line forgotten would take every device.
        raise PydanticCustomError("matrix_value", "an empty selector; `devices: all` selects every device")
    return selectors


def _thermal_status(value: object) -> ThermalStatus:
    if isinstance(value, str) and value.upper() in ThermalStatus.__members__:
        return ThermalStatus[value.upper()]
    if type(value) is int and value in ThermalStatus.__members__.values():
        return ThermalStatus(value)
    names = ", ".join(ThermalStatus.__members__)
    raise PydanticCustomError("matrix_value", f"not one of Android's thermal statuses: {names}")


#: Ten times what any phone's clock is now.
_MAX_HZ = 10**11


def _screen(value: object) -> object:
    """Accept `on` and `off`, which YAML takes for true and false."""
    return {True: Screen.ON, False: Screen.OFF}[value] if isinstance(value, bool) else value


def _switch(value: object) -> object:
    """Accept `on` and `off` in quotes and in JSON; YAML takes them for true and false."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


def _cores(text: str) -> str:
    kinds = ", ".join(CoreKind)
    if text in set(CoreKind):
        return text
    return _core_list(text, f"no cores: one of {kinds}, or a list such as 4-7 or 0,2, is needed")


def _online(text: str) -> str:
    return _core_list(text, "no list of cores, such as 0-3 or 0,4") if text else text


def _core_list(text: str, otherwise: str) -> str:
    """Return the kernel's own form, so that the same cores are always the same text."""
    if (cores := core_list(text)) is None:
        raise PydanticCustomError("matrix_value", otherwise)
    return core_text(cores)


def _check_together(controls: Controls) -> Controls:
    if controls.min_hz is not None and controls.max_hz is not None and controls.min_hz > controls.max_hz:
        raise PydanticCustomError("matrix_value", "min_hz is above max_hz")
    if controls.online and controls.cores not in set(CoreKind):
        off = set(core_list(controls.cores) or ()) - set(core_list(controls.online) or ())
        if off:
            raise PydanticCustomError("matrix_value", "the run is bound to cores that are not to be online")
    return controls


_SECONDS_BY_UNIT = {"s": 1, "min": 60, "h": 3600}
_DURATION = re.compile(r"([1-9][0-9]{0,4}) ?(s|min|h)", re.ASCII)


def _seconds(value: object) -> int:
    """Return a duration in whole seconds: `10min`, `90 s`, or a number of seconds."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    seconds = int(match[1]) * _SECONDS_BY_UNIT[match[2]] if match else value
    if type(seconds) is not int or not 1 <= seconds <= _MAX_SUSTAINED_S:
        raise PydanticCustomError("matrix_value", "no duration from 1s to 4h, such as 10min or 90s")
    return seconds


Scalar = Annotated[SettingValue, PlainValidator(_scalar)]
#: One value, or a list of them.
Scalars = Annotated[tuple[SettingValue, ...], PlainValidator(_scalars)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_TEXT_CHARS)]
Partial = Annotated[dict[Name, Scalar], Field(min_length=1, max_length=64)]


#: Strict: a number in quotes is a slip, not a number.
_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def model_of(core: type, **types: Any) -> type[BaseModel]:
    """Return a model with the fields and defaults of a core dataclass, and with these types and bounds."""
    hints = get_type_hints(core)
    definitions: dict[str, Any] = {}
    for field in fields(core):
        default = ... if field.default is MISSING else field.default
        if field.default_factory is not MISSING:
            default = Field(default_factory=field.default_factory)
        definitions[field.name] = (types.get(field.name, hints[field.name]), default)
    return create_model(core.__name__, __config__=_STRICT, **definitions)


def read_as(core: type[CoreT], model: type[BaseModel]) -> Any:
    """Return the type of values that are checked by a model and become the core's."""
    return Annotated[model, AfterValidator(lambda checked: core(**dict(checked)))]


def _until(value: object) -> float | None:
    """Return the half-width that rounds are added for; None for a verdict."""
    width = value.get("half_width") if isinstance(value, Mapping) and len(value) == 1 else None
    width = _share(width)
    if isinstance(width, float) and _LEAST_HALF_WIDTH <= width <= 1:
        return width
    if value == "decided":
        return None
    raise PydanticCustomError(
        "matrix_value", "must be `decided`, or `{half_width: 1%}`, of at least 0.01 % and at most 100 %"
    )


def _share(value: object) -> object:
    """Return `3%` as 0.03."""
    share = share_of_percent(value) if isinstance(value, str) else None
    return value if share is None else share


def _check_growth(rounds: SequentialRounds) -> SequentialRounds:
    if rounds.until is not None and rounds.not_slower is not None:
        raise PydanticCustomError("matrix_value", "until and not_slower exclude each other")
    if rounds.at_least >= rounds.at_most:
        raise PydanticCustomError("matrix_value", "at_least must be less than at_most")
    return rounds


def _selector(checked: BaseModel) -> Selector:
    return {key: values for key, values in checked if values is not None}


#: A device fits a selector that it fits in every given key.
_SELECTOR_FIELDS: dict[str, Any] = dict.fromkeys(SELECTOR_KEYS, (Scalars | None, None))
SELECTOR_MODEL: type[BaseModel] = create_model("Selector", __config__=_STRICT, **_SELECTOR_FIELDS)
GATES_MODEL = model_of(
    Gates,
    max_thermal_status=Annotated[ThermalStatus, PlainValidator(_thermal_status)],
    max_skin_c=Annotated[float, Field(ge=0, le=100)],
    min_battery_pct=Annotated[int, Field(ge=0, le=100)],
    min_storage_bytes=Annotated[int, Field(ge=0, lt=2**50)],
    max_battery_c=Annotated[float, Field(ge=0, le=100)],
    unknown=Annotated[UnknownGatePolicy, Field(strict=False)],
    wait_s=Annotated[float, Field(ge=0, le=_DAY_S)],
)
CONTROLS_MODEL = model_of(
    Controls,
    screen=Annotated[Screen, Field(strict=False), BeforeValidator(_screen)],
    cores=Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_cores)],
    governor=Annotated[str, Field(max_length=40, pattern=r"^([a-z][a-z0-9_-]*)?$")],
    min_hz=Annotated[int, Field(ge=1_000_000, le=_MAX_HZ)] | None,
    max_hz=Annotated[int, Field(ge=1_000_000, le=_MAX_HZ)] | None,
    online=Annotated[str, Field(max_length=200), AfterValidator(_online)],
)
_RoundCount = Annotated[int, Field(ge=MIN_ROUNDS, le=MAX_ROUNDS)]
ROUNDS_MODEL = model_of(
    SequentialRounds,
    at_least=_RoundCount,
    at_most=_RoundCount,
    until=Annotated[float | None, PlainValidator(_until)],
    not_slower=Annotated[float, BeforeValidator(_share), Field(ge=0, le=0.5)] | None,
)
#: A selector, several of which any is to fit, or `all`.
SELECTORS = Annotated[
    tuple[Annotated[SELECTOR_MODEL, AfterValidator(_selector)], ...],
    BeforeValidator(_listed_selectors),
    Field(min_length=1, max_length=100, strict=False),
]
MATRIX_MODEL = model_of(
    MatrixSpec,
    name=Name,
    harness=Name
    | Annotated[
        tuple[Name, ...], AfterValidator(_distinct), Field(min_length=1, max_length=64, strict=False)
    ],
    axes=Annotated[dict[Name, Scalars], Field(max_length=64)],
    settings=Annotated[dict[Name, Scalar], Field(max_length=64)],
    include=Annotated[tuple[Partial, ...], Field(max_length=10_000, strict=False)],
    exclude=Annotated[tuple[Partial, ...], Field(max_length=100, strict=False)],
    devices=SELECTORS,
    rounds=Annotated[
        Annotated[int, Field(ge=1, le=MAX_ROUNDS), Tag("<number>")]
        | Annotated[read_as(SequentialRounds, ROUNDS_MODEL), AfterValidator(_check_growth), Tag("<growing>")],
        Discriminator(lambda value: "<growing>" if isinstance(value, Mapping) else "<number>"),
    ],
    baseline=Partial | None,
    metrics=Annotated[
        tuple[Name, ...],
        BeforeValidator(_listed),
        AfterValidator(_distinct),
        Field(max_length=64, strict=False),
    ],
    inputs=Annotated[
        tuple[Annotated[Name, AfterValidator(_input)], ...],
        BeforeValidator(_listed),
        Field(max_length=MOST_INPUTS, strict=False),
    ],
    seed=Annotated[int, Field(ge=0, lt=2**63)] | None,
    timeout_s=Annotated[float, Field(gt=0, le=_DAY_S)],
    sustained=Annotated[int, PlainValidator(_seconds)] | None,
    gates=read_as(Gates, GATES_MODEL),
    controls=Annotated[read_as(Controls, CONTROLS_MODEL), AfterValidator(_check_together)],
    sampling=Annotated[bool, BeforeValidator(_switch)],
    equivalence_margin=Annotated[float, Field(ge=0, le=0.5)],
    noise_limit=Annotated[float, Field(gt=0, le=10)],
    priority=Annotated[int, Field(ge=-100, le=100)],
)
_MATRIX: TypeAdapter[MatrixSpec] = TypeAdapter(read_as(MatrixSpec, MATRIX_MODEL))
_OF_STANDING = (("schedule",), ("skip",))
_STANDS = "it is a key of a matrix that the farm keeps measuring: `farm matrix stand FILE`"
_WITHOUT_BASELINE = SpecProblem(
    path=("rounds",),
    message="without a baseline, no cell is compared, so none is ever decided",
    hint="add `baseline: {...}`, or write a number of rounds",
)


def matrix_spec(data: object, *, text: str | None = None, further_keys: Sequence[str] = ()) -> MatrixSpec:
    """Check the shape of a matrix.

    Args:
        data: what JSON or `load_matrix` gave.
        text: the YAML it came from, to name lines.
        further_keys: keys that are read before, and may be meant by unknown ones.

    Raises:
        MatrixInvalid: names the place of everything that is wrong, with close matches of unknown keys.
    """
    try:
        spec = _MATRIX.validate_python(data)
    except ValidationError as error:
        problems = [
            replace(problem, hint=_STANDS) if problem.path in _OF_STANDING else problem
            for problem in problems_of(
                error, data, known_keys=lambda loc: [*_known_keys(loc), *further_keys], root="matrix"
            )
        ]
        lines = [line_of(text, problem.path) for problem in problems] if text else []
        raise matrix_invalid(problems, lines) from error
    if isinstance(spec.rounds, SequentialRounds) and spec.baseline is None:
        line = line_of(text, _WITHOUT_BASELINE.path) if text else None
        raise matrix_invalid([_WITHOUT_BASELINE], [line] if text else [])
    return _with_samples_of_energy(spec)


def _with_samples_of_energy(spec: MatrixSpec) -> MatrixSpec:
    if spec.energy == "battery" and not spec.sampling:
        message = "`battery` is measured by the samples of the run, and `sampling` is off"
        raise matrix_invalid([SpecProblem(path=("energy",), message=message, hint="leave `sampling` out")])
    return spec


def load_matrix(text: str) -> dict[str, Any]:
    """Read a matrix as plain data.

    Raises:
        MatrixInvalid: it is none; tells line and column.
    """
    try:
        return load_plain(text, noun="matrix")
    except YamlNotPlain as error:
        raise matrix_invalid([SpecProblem(message=str(error), hint=error.hint)]) from error


def read_matrix(text: str, *, check: Callable[..., object] = matrix_spec) -> dict[str, Any]:
    """Read a matrix as plain data, and check it; raises like `load_matrix` and `check`."""
    spec = load_matrix(text)
    check(spec, text=text)
    return spec


def _known_keys(loc: Sequence[str | int]) -> Sequence[str]:
    """Return the keys that are valid next to the last part of `loc`."""
    match loc[0]:
        case "gates" if len(loc) > 1:
            return list(GATES_MODEL.model_fields)
        case "controls" if len(loc) > 1:
            return list(CONTROLS_MODEL.model_fields)
        case "rounds" if len(loc) > 1:
            return list(ROUNDS_MODEL.model_fields)
        case "devices" if len(loc) > 1:
            return list(SELECTOR_KEYS)
        case _:
            return list(MATRIX_MODEL.model_fields)
