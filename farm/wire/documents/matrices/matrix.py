"""A matrix at the edge: its shape and bounds, checked before anything is looked up."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.devices.condition import Gates, ThermalStatus, UnknownGatePolicy
from farm.core.devices.controls import Controls
from farm.core.devices.selector import Selector
from farm.core.matrices.matrix import DEFAULT_NOISE_LIMIT, MAX_ROUNDS, MatrixPlan
from farm.core.runs.verdict import DEFAULT_MARGIN
from farm.wire.documents.matrices.controls import ControlsSpec
from farm.wire.documents.matrices.matrix_text import line_of, load_matrix
from farm.wire.validation_errors import problems_of

_GATES = Gates()
_MAX_VALUES = 1000
_MAX_TEXT_CHARS = 200
#: A flag may hold a whole command line.
_MAX_VALUE_CHARS = 4000
_DAY_S = 86_400.0


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
    return tuple(_scalar(each) for each in values)


def _listed_selectors(value: object) -> object:
    if value == "all":
        return ({},)
    if not isinstance(value, Mapping | list | tuple):
        raise PydanticCustomError("matrix_value", "must be `all`, a selector, or a list of selectors")
    return (value,) if isinstance(value, Mapping) else value


def _thermal_status(value: object) -> ThermalStatus:
    if isinstance(value, str) and value.upper() in ThermalStatus.__members__:
        return ThermalStatus[value.upper()]
    if type(value) is int and value in ThermalStatus.__members__.values():
        return ThermalStatus(value)
    names = ", ".join(ThermalStatus.__members__)
    raise PydanticCustomError("matrix_value", f"not one of Android's thermal statuses: {names}")


Scalar = Annotated[SettingValue, PlainValidator(_scalar)]
#: One value, or a list of them.
Scalars = Annotated[
    tuple[SettingValue, ...],
    PlainValidator(_scalars),
    # Without one, pydantic checks the list that JSON has against the tuple that it came from, and warns.
    PlainSerializer(list, return_type=list[SettingValue]),
]
Status = Annotated[ThermalStatus, PlainValidator(_thermal_status), PlainSerializer(int, return_type=int)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_TEXT_CHARS)]
Partial = Annotated[dict[Name, Scalar], Field(min_length=1, max_length=64)]


class _MatrixPart(BaseModel):
    """Strict: a number in quotes is a slip, not a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class SelectorSpec(_MatrixPart):
    """A device selector; a device matches when it matches every given key."""

    device: Scalars | None = None
    device_id: Scalars | None = None
    label: Scalars | None = None
    tag: Scalars | None = None
    device_model: Scalars | None = None
    manufacturer: Scalars | None = None
    market_name: Scalars | None = None
    unit: Scalars | None = None
    soc: Scalars | None = None
    soc_vendor: Scalars | None = None
    soc_model: Scalars | None = None
    gpu: Scalars | None = None
    nnapi: Scalars | None = None
    root: Scalars | None = None
    android: Scalars | None = None
    api_level: Scalars | None = None
    abi: Scalars | None = None
    host: Scalars | None = None
    virtual: Scalars | None = None

    def selector(self) -> Selector:
        """Return the given keys."""
        return {key: values for key, values in self if values is not None}


class GatesSpec(_MatrixPart):
    """The conditions that must hold before each run."""

    max_thermal_status: Status = _GATES.max_thermal_status
    max_skin_c: float = Field(_GATES.max_skin_c, ge=0, le=100)
    min_battery_pct: int = Field(_GATES.min_battery_pct, ge=0, le=100)
    min_storage_bytes: int = Field(_GATES.min_storage_bytes, ge=0, lt=2**50)
    max_battery_c: float = Field(_GATES.max_battery_c, ge=0, le=100)
    mains: bool = _GATES.mains
    full_clocks: bool = _GATES.full_clocks
    unknown: UnknownGatePolicy = Field(_GATES.unknown, strict=False)
    wait_s: float = Field(_GATES.wait_s, ge=0, le=_DAY_S)

    def gates(self) -> Gates:
        """Return the gates of the core."""
        return Gates(**dict(self))


class MatrixSpec(_MatrixPart):
    """A matrix as users write it."""

    name: Name
    harness: Name
    axes: dict[Name, Scalars] = Field(default_factory=dict, max_length=64)
    settings: dict[Name, Scalar] = Field(default_factory=dict, max_length=64)
    include: tuple[Partial, ...] = Field((), max_length=10_000, strict=False)
    exclude: tuple[Partial, ...] = Field((), max_length=100, strict=False)
    devices: Annotated[
        tuple[SelectorSpec, ...],
        BeforeValidator(_listed_selectors),
        Field(min_length=1, max_length=100, strict=False),
    ]
    rounds: int = Field(5, ge=1, le=MAX_ROUNDS)
    baseline: Partial | None = None
    aa: bool = False
    seed: int | None = Field(None, ge=0, lt=2**63)
    timeout_s: float = Field(120.0, gt=0, le=_DAY_S)
    gates: GatesSpec = Field(default_factory=GatesSpec)
    controls: ControlsSpec = Field(default_factory=ControlsSpec)
    equivalence_margin: float = Field(DEFAULT_MARGIN, ge=0, le=0.5)
    noise_limit: float = Field(DEFAULT_NOISE_LIMIT, gt=0, le=10)
    priority: int = Field(0, ge=-100, le=100)

    def plan(self) -> MatrixPlan:
        """Return the plan of the core."""
        return MatrixPlan(
            name=self.name,
            harness=self.harness,
            axes=self.axes,
            settings=self.settings,
            include=self.include,
            exclude=self.exclude,
            selectors=tuple(spec.selector() for spec in self.devices),
            rounds=self.rounds,
            baseline=self.baseline,
            aa=self.aa,
            seed=self.seed,
            timeout_s=self.timeout_s,
            gates=self.gates.gates(),
            controls=Controls(**dict(self.controls)),
            equivalence_margin=self.equivalence_margin,
            noise_limit=self.noise_limit,
            priority=self.priority,
        )


def matrix_spec(data: object, *, text: str | None = None) -> MatrixSpec:
    """Check the shape of a matrix.

    Args:
        data: what JSON or `load_matrix` gave.
        text: the YAML it came from, to name lines.

    Raises:
        MatrixInvalid: names the place of everything that is wrong, with close matches of unknown keys.
    """
    try:
        return MatrixSpec.model_validate(data)
    except ValidationError as error:
        problems = spec_problems(error, data)
        lines = [line_of(text, problem.path) for problem in problems] if text else []
        raise matrix_invalid(problems, lines) from error


def matrix_from_text(text: str) -> MatrixSpec:
    """Read and check a matrix file; raises like `load_matrix` and `matrix_spec`."""
    return matrix_spec(load_matrix(text), text=text)


def spec_problems(error: ValidationError, data: object = None) -> list[SpecProblem]:
    """Translate pydantic's errors; with `data`, places are as the user wrote them."""
    return problems_of(error, data, known_keys=_known_keys, root="matrix")


def _known_keys(loc: Sequence[str | int]) -> Sequence[str]:
    """Return the keys that are valid next to the last part of `loc`."""
    match loc[0]:
        case "gates" if len(loc) > 1:
            return list(GatesSpec.model_fields)
        case "controls" if len(loc) > 1:
            return list(ControlsSpec.model_fields)
        case "devices" if len(loc) > 1:
            return list(SelectorSpec.model_fields)
        case _:
            return list(MatrixSpec.model_fields)
