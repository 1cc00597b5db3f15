"""Messages of agents with a part that is out of bounds: that part is left out, and its device says so.

A host has many devices, and a run can make any of them report what it likes. So what one of them reports
fails no exchange of the others.
"""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import TypeAdapter, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import ErrorDetails

from farm.core.errors import DeviceImplausible
from farm.core.runs.evidence import Evidence, RunError
from farm.wire.agents.protocol import DeviceActionReport, DeviceReport, Exchange, Report

T = TypeVar("T")

#: pydantic's errors of values beyond their bounds. Any other is no device's doing: its agent is of another
#: release, or broken.
_OUT_OF_BOUNDS = frozenset(
    {
        *("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"),
        *("string_too_long", "string_too_short", "too_long", "too_short", "int_parsing_size"),
    }
)
#: JSON has no infinity: an agent that means it writes null.
_NUMBER_EXPECTED = frozenset({"int_type", "float_type"})
#: One pass for each part; an object that misses a key then is a further part.
_MAX_PASSES = 8
_DEVICE_REPORT = TypeAdapter(DeviceReport)
_ACTION_REPORT = TypeAdapter(DeviceActionReport)
_REPORT = TypeAdapter(Report)


def check_report(report: DeviceReport) -> DeviceReport:
    """Return a report as the farm will read it: its facts and its condition were not validated before."""
    document = report.model_dump(mode="json")
    try:
        _DEVICE_REPORT.validate_python(document)
    except ValidationError:
        return _plausible_report(document)
    return report


def read_report(body: bytes) -> Evidence:
    """Return the evidence in a report.

    A run of which a part is implausible has no result: its device is not to be trusted with the other parts.

    Raises:
        ValidationError: it is not a report.
    """
    try:
        return _REPORT.validate_json(body).evidence
    except ValidationError as error:
        if not _is_out_of_bounds(error.errors(include_url=False)):
            raise
    report, left_out = _without_implausible(_REPORT, json.loads(body))
    reason = DeviceImplausible(f"its device reports what cannot be: {left_out}")
    return replace(report.evidence, exit=None, error=RunError.of(reason))


def _plausible_report(document: Mapping[str, Any]) -> DeviceReport:
    report, left_out = _without_implausible(_DEVICE_REPORT, document)
    return report if left_out is None else report.model_copy(update={"implausible": left_out})


def _plausible_action(document: Mapping[str, Any]) -> DeviceActionReport:
    try:
        return _ACTION_REPORT.validate_python(document)
    except ValidationError as error:
        if not _is_out_of_bounds(error.errors(include_url=False)):
            raise
        problem = f"the device reports what cannot be: {_text(error.errors(include_url=False))}"
        return _ACTION_REPORT.validate_python(
            {"device_action_id": document.get("device_action_id"), "error": problem}
        )


def _receive(document: Any, validate: ValidatorFunctionWrapHandler) -> Exchange:
    try:
        exchange: Exchange = validate(document)
    except ValidationError:
        if not isinstance(document, Mapping):
            raise
        plausible = {
            **document,
            "devices": _each(_plausible_report, document.get("devices", ())),
            "device_actions": _each(_plausible_action, document.get("device_actions", ())),
        }
        exchange = validate(plausible)
    return exchange


def _each(read: Any, items: object) -> object:
    if not isinstance(items, list | tuple):
        return items
    return [read(item) if isinstance(item, Mapping) else item for item in items]


#: An exchange as a farm receives it.
ReceivedExchange = Annotated[Exchange, WrapValidator(_receive)]


def _without_implausible(adapter: TypeAdapter[T], document: Mapping[str, Any]) -> tuple[T, str | None]:
    remaining, left_out = deepcopy(dict(document)), list[str]()
    for _ in range(_MAX_PASSES):
        try:
            return adapter.validate_python(remaining), "; ".join(left_out) or None
        except ValidationError as error:
            errors = error.errors(include_url=False)
            is_ours = all(each["type"] == "missing" for each in errors) and left_out
            if not is_ours and not _is_out_of_bounds(errors):
                raise
            if not is_ours:
                left_out.append(_text(errors))
            # From the last to the first: positions in lists before it stay.
            for each in reversed(errors):
                path = each["loc"][:-1] if each["type"] == "missing" else each["loc"]
                if not _remove(remaining, [key for key in path if key != "[key]"]):
                    raise
    return adapter.validate_python(remaining), "; ".join(left_out)


def _is_out_of_bounds(errors: Iterable[ErrorDetails]) -> bool:
    return all(
        error["type"] in _OUT_OF_BOUNDS or (error["type"] in _NUMBER_EXPECTED and error["input"] is None)
        for error in errors
    )


def _text(errors: Iterable[ErrorDetails]) -> str:
    return "; ".join(map(_error_text, errors))


def _error_text(error: ErrorDetails) -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place} is {str(error['input'])[:40]}: {error['msg']}"


def _remove(document: Any, path: list[str | int]) -> bool:
    """Remove what a path leads to; return whether there is anything but the whole."""
    if not path:
        return False
    parent = document
    try:
        for key in path[:-1]:
            parent = parent[key]
        if isinstance(parent, tuple):
            return False
        del parent[path[-1]]
    except (LookupError, TypeError):
        # It went with an earlier one.
        return True
    return True
