"""Standing matrices at the edge: read from YAML or JSON, and shown with what is measured of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.spec_errors import SpecProblem, matrix_invalid
from farm.core.matrices.matrix import MatrixSpec
from farm.core.matrices.standing import STANDING_PRIORITY, Coverage, Skip, StandingSpec
from farm.wire.base import Wire
from farm.wire.documents.matrices.matrix import SELECTORS, Name, Partial, matrix_spec, model_of, read_as
from farm.wire.validation_errors import problems_of
from farm.wire.yaml_positions import line_of

_OWN_KEYS = ("schedule", "skip")


def _day(value: object) -> object:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise PydanticCustomError("matrix_value", 'no day, such as "2027-01-31"') from None


SKIP_MODEL = model_of(
    Skip,
    reason=Name,
    until=Annotated[date, BeforeValidator(_day)],
    cells=Partial,
    devices=SELECTORS,
)
_SKIP: Any = read_as(Skip, SKIP_MODEL)
_OWN_MODEL = model_of(
    StandingSpec,
    matrix=dict[str, Any],
    schedule=Name | None,
    skip=Annotated[tuple[_SKIP, ...], Field(max_length=100, strict=False)],
)
_OWN = TypeAdapter(_OWN_MODEL)


def standing_spec(data: Mapping[str, Any], *, text: str | None = None) -> StandingSpec:
    """Check the shape of a standing matrix: a matrix, with `schedule` and `skip`.

    Without a priority it has one below those of people's matrices.

    Args:
        data: what JSON or `load_matrix` gave.
        text: the YAML it came from, to name lines.

    Raises:
        MatrixInvalid: names the place of everything that is wrong.
    """
    own = {key: data[key] for key in _OWN_KEYS if key in data}
    rest = {key: value for key, value in data.items() if key not in own}
    spec = matrix_spec(rest, text=text, further_keys=_OWN_KEYS)
    try:
        read = _OWN.validate_python({"matrix": {}, **own})
    except ValidationError as error:
        problems = problems_of(error, own, known_keys=lambda _: list(SKIP_MODEL.model_fields), root="matrix")
        lines = [line_of(text, problem.path) for problem in problems] if text else []
        raise matrix_invalid(problems, lines) from error
    if "priority" not in data:
        spec = replace(spec, priority=STANDING_PRIORITY)
    elif spec.priority >= 0:
        problem = SpecProblem(
            path=("priority",),
            message="a standing matrix yields to people: its priority is below 0",
            hint=f"leave it out for {STANDING_PRIORITY}",
        )
        raise matrix_invalid([problem], [line_of(text, problem.path)] if text else [])
    return StandingSpec(matrix=spec, **{key: value for key, value in read if key in _OWN_KEYS})


def plannable_spec(data: Mapping[str, Any], *, text: str | None = None) -> MatrixSpec | StandingSpec:
    """Check the shape of a matrix that is only planned; one with `schedule` or `skip` is to stand.

    Arguments and errors are those of `standing_spec`.
    """
    is_to_stand = any(key in data for key in _OWN_KEYS)
    return standing_spec(data, text=text) if is_to_stand else matrix_spec(data, text=text)


class StandingSubmission(Wire):
    """POST /api/v1/standing-matrices: the matrix as in its YAML, with `schedule` and `skip`."""

    spec: dict[str, Any]


class CoverageCounts(Wire):
    """Numbers of cells by what the farm has of them at their present versions."""

    measured: int = 0
    queued: int = 0
    failed: int = 0
    missing: int = 0
    skipped: int = 0
    rejected: int = 0


class StandingSummary(Wire):
    """A standing matrix."""

    standing_id: int
    name: str
    #: Several are separated by commas.
    harness: str
    #: Five fields of cron, in UTC; None: cells are measured once for each version.
    schedule: str | None
    #: None without a schedule.
    next_due_at: datetime | None
    submitted_by: str
    created_at: datetime
    changed_at: datetime
    #: The reason why nothing can be queued for it now.
    problem: str | None


class CoveredDevice(Wire):
    """The cells of a standing matrix on one device."""

    device_id: DeviceId
    device_label: str | None
    cells: CoverageCounts


class UncoveredCell(Wire):
    """A cell that has no measurement at its present versions, and why."""

    #: None: on every device.
    device_id: DeviceId | None
    device_label: str | None
    label: str
    coverage: Coverage
    reason: str
    #: The last day on which it is skipped.
    until: date | None = None
    #: The matrix that measures it, or tried to.
    matrix_id: MatrixId | None = None


class StandingView(StandingSummary):
    """A standing matrix with its coverage."""

    cells: CoverageCounts
    devices: Sequence[CoveredDevice]
    #: The first ones.
    uncovered: Sequence[UncoveredCell]
    #: Those that are not in it.
    more_uncovered: int
    #: The newest of its matrices; None before the first.
    last_matrix_id: MatrixId | None
