"""Every number, text, list and mapping that an agent sends has bounds."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from farm.core.devices.condition import CpuPolicy
from farm.wire.agents.protocol import ClockReport, Enrollment, Exchange, Report, SessionOpening
from farm.wire.agents.report_batch import ReportHeads

#: What agents send. The farm's answers are not among them: they are bounded as a whole, and what becomes a
#: path has a pattern.
MESSAGES: tuple[type[BaseModel], ...] = (
    Enrollment,
    SessionOpening,
    ClockReport,
    Exchange,
    Report,
    ReportHeads,
)
#: Places without a bound in JSON schema, and why.
EXCEPTIONS = {
    "CpuPolicy.time_in_state_ms: no maxLength of its keys": "they are numbers, with bounds of their own"
}
_NEEDED = {
    "integer": (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")),
    "number": (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")),
    "string": (("maxLength",),),
    "array": (("maxItems",),),
    "object": (("maxProperties",),),
}


def unbounded(schema: Any, place: str) -> Iterator[str]:
    """Yield what a JSON schema leaves open, definitions apart."""
    if isinstance(schema, list):
        for part in schema:
            yield from unbounded(part, place)
        return
    if not isinstance(schema, dict) or schema.keys() & {"enum", "const", "$ref"}:
        return
    if schema.get("format") == "date-time":
        return
    if not schema.keys() & {"type", "anyOf", "oneOf", "allOf"}:
        yield f"{place}: no type"
    if "properties" in schema:
        assert schema.get("additionalProperties", False) is False, f"{place} takes any further key"
        for name, part in schema["properties"].items():
            yield from unbounded(part, f"{place}.{name}")
        return
    for names in _NEEDED.get(schema.get("type"), ()):
        if not schema.keys() & set(names):
            yield f"{place}: no {names[0]}"
    if schema.get("type") == "object" and "maxLength" not in schema.get("propertyNames", {}):
        yield f"{place}: no maxLength of its keys"
    for name in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
        yield from unbounded(schema.get(name), place)


@pytest.mark.parametrize("message", MESSAGES)
def test_every_number_text_list_and_mapping_of_an_agents_message_has_bounds(message: type[BaseModel]) -> None:
    schema = message.model_json_schema()
    parts = {message.__name__: schema, **schema.get("$defs", {})}
    found = {problem for name, part in parts.items() for problem in unbounded(part, name)}
    assert found - EXCEPTIONS.keys() == set()


@pytest.mark.parametrize("key", ["-1", "1000000000000"])
def test_a_clock_that_no_chip_has_is_refused_as_a_key_too(key: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(CpuPolicy).validate_python({"name": "policy0", "time_in_state_ms": {key: 1}})


def test_what_has_no_bound_is_found() -> None:
    class Open(BaseModel):
        number: int
        share: float | None
        text: str
        words: tuple[str, ...]
        by_name: dict[str, int]
        anything: Any

    places = {problem.partition(":")[0] for problem in unbounded(Open.model_json_schema(), "Open")}
    assert places == {f"Open.{name}" for name in Open.model_fields}
