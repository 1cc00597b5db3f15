"""What a value must be, said for people."""

from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from farm.config import FarmConfig, invalid_setting
from farm.core.base.validation_messages import constraint_message


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (int, "x", "must be a whole number"),
        (int, 2.5, "must be a whole number"),
        (int, None, "must be a whole number"),
        (float, "high", "must be a number"),
        (bool, "maybe", "must be true or false"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
        (Annotated[int, Field(le=100)], 101, "must be at most 100"),
        (Annotated[float, Field(gt=0)], 0, "must be more than 0"),
        (Annotated[float, Field(lt=1)], 1, "must be less than 1"),
        (str, 7, "must be a text"),
        (Annotated[str, Field(min_length=1)], "", "must not be empty"),
        (Annotated[str, Field(min_length=3)], "ab", "must have at least 3 characters"),
        (Annotated[str, Field(max_length=2)], "abc", "must have at most 2 characters"),
        (Annotated[list[int], Field(min_length=1)], [], "must not be empty"),
        (Annotated[dict[str, int], Field(max_length=1)], {"a": 1, "b": 2}, "must have at most 1 entries"),
        (Annotated[float, Field(allow_inf_nan=False)], float("nan"), "must be a finite number"),
        (bytes, 7, "should be a valid bytes"),
    ],
)
def test_kinds_and_limits_are_told_in_plain_words(kind: Any, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(value)
    (found,) = refused.value.errors()
    assert constraint_message(found["type"], found["msg"], found.get("ctx", {})) == said


def test_a_setting_that_is_no_number_is_named_with_what_it_must_be() -> None:
    with pytest.raises(ValidationError) as refused:
        FarmConfig.model_validate({"port": "x"})
    assert invalid_setting(refused.value, "FARM_").message == "FARM_PORT=x: must be a whole number"
