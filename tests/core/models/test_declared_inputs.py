"""Inputs as people write them, and what they say of a file that states its own."""

import pytest

from farm.core.errors import InvalidInput
from farm.core.models.declared_inputs import (
    InputsContradict,
    completed_inputs,
    declared_input,
    input_text,
)
from farm.core.models.variant import TensorSpec

IMAGE = TensorSpec(name="image", shape=(-1, 3, 224, 224), dtype="float32", free=("batch", "", "", ""))
MASK = TensorSpec(name="mask", shape=(-1, 8), dtype="bool", free=("batch", ""))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("1x3x224x224:float32", TensorSpec(shape=(1, 3, 224, 224), dtype="float32")),
        ("8:uint8", TensorSpec(shape=(8,), dtype="uint8")),
        ("tokens=1x?:int64", TensorSpec(name="tokens", shape=(1, -1), dtype="int64")),
        ("serving_default_x:0=1:bool", TensorSpec(name="serving_default_x:0", shape=(1,), dtype="bool")),
        ("scalar:float16", TensorSpec(shape=(), dtype="float16")),
    ],
)
def test_an_input_is_written_as_name_shape_and_type(text: str, spec: TensorSpec) -> None:
    assert declared_input(text) == spec
    assert input_text(spec) == text


@pytest.mark.parametrize("text", ["", "1x3", "1x3:float", "1,3:float32", "=1:int8", "1x-3:int8", "x:bool"])
def test_what_is_no_input_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        declared_input(text)
    assert "NAME=1x3x224x224:float32" in refusal.value.hint


def completed(*texts: str, stated: tuple[TensorSpec, ...] = (IMAGE, MASK)) -> list[str]:
    return [input_text(spec) for spec in completed_inputs(stated, [declared_input(text) for text in texts])]


def test_declared_sizes_complete_those_that_the_file_leaves_free() -> None:
    assert completed("4x3x224x224:float32", "4x8:bool") == ["image=4x3x224x224:float32", "mask=4x8:bool"]
    assert completed("mask=4x?:bool") == ["image=?x3x224x224:float32", "mask=4x8:bool"]
    assert completed() == ["image=?x3x224x224:float32", "mask=?x8:bool"]


def test_a_free_size_can_be_declared_again() -> None:
    once = completed_inputs([MASK], [declared_input("4x8:bool")])
    assert completed("2x8:bool", stated=once) == ["mask=2x8:bool"]


def test_of_a_file_that_states_nothing_whatever_is_declared_is_right() -> None:
    assert completed("x=1:bool", stated=()) == ["x=1:bool"]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["image=1x3x96x96:float32"], "takes image=.x3x224x224:float32, not image=1x3x96x96:float32"),
        (["image=1x3x224x224:int8"], "takes image=.x3x224x224:float32, not"),
        (["image=1x3x224:float32"], "takes image=.x3x224x224:float32, not"),
        (["1x3x224x224:float32"], "takes 2 inputs and 1 are declared: it has image="),
        (["ids=1:int64"], "has no input ids: it has image="),
        (["image=1x3x224x224:float32", "mask=2x8:bool"], "one size batch, and 1 and 2 are declared"),
    ],
)
def test_what_contradicts_the_file_is_told(texts: list[str], reason: str) -> None:
    with pytest.raises(InputsContradict, match=reason):
        completed(*texts)
