from dataclasses import dataclass
from typing import NamedTuple

import pytest
from pydantic import ValidationError

from farm.wire.base import Wire


class Reading(Wire):
    name: str
    value: int
    unit: str = "ns"
    note: str | None = None


class Named(Wire):
    name: str


class Value(NamedTuple):
    value: int


@dataclass(frozen=True, kw_only=True)
class Doubled:
    name: str
    half: int

    @property
    def value(self) -> int:
        return 2 * self.half


def test_a_message_takes_fields_of_models_named_tuples_and_dataclasses() -> None:
    assert Reading.of(Named(name="one"), Value(3)) == Reading(name="one", value=3)
    assert Reading.of(Doubled(name="two", half=4)) == Reading(name="two", value=8)


def test_the_first_record_that_has_a_field_gives_it_unless_it_is_given() -> None:
    doubled = Doubled(name="two", half=4)
    assert Reading.of(Named(name="one"), doubled) == Reading(name="one", value=8)
    assert Reading.of(doubled, Named(name="one"), value=5, unit="s") == Reading(name="two", value=5, unit="s")


def test_a_message_is_refused_without_a_field_that_no_record_has() -> None:
    with pytest.raises(ValidationError, match="value"):
        Reading.of(Named(name="one"))
