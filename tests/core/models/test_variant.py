"""What variants are called, and which command makes one that is missing."""

import pytest

from farm.core.models.builders import build_command
from farm.core.models.variant import (
    Format,
    Precision,
    Recipe,
    is_precision,
    meant_precision,
    precision_hint,
    variant_name,
)

FLOAT32, INT8, LITE = Precision.FLOAT32, Precision.INT8_FULL, Format.LITE


@pytest.mark.parametrize(
    ("recipe", "name", "command"),
    [
        (
            Recipe(precision=FLOAT32, format=LITE),
            "net/float32/lite",
            "build net --precision float32 --format lite",
        ),
        (
            Recipe(precision=INT8, format=LITE, memory_format="channels_last", target="nnapi"),
            "net/int8-full/lite/channels_last/nnapi",
            "build net --precision int8-full --format lite --memory-format channels_last --target nnapi",
        ),
        (
            Recipe(precision=INT8, format=LITE, target="nnapi"),
            "net/int8-full/lite/nnapi",
            "build net --precision int8-full --format lite --memory-format contiguous --target nnapi",
        ),
        (
            Recipe(precision=FLOAT32, format=Format.ONNX),
            "net/float32/onnx",
            "build net --precision float32 --format onnx",
        ),
        (
            Recipe(precision=FLOAT32, format=Format.EXECUTORCH, target="xnnpack"),
            "net/float32/executorch/xnnpack",
            "build net --precision float32 --format executorch",
        ),
        (
            Recipe(precision=FLOAT32, format=Format.EXECUTORCH),
            "net/float32/executorch",
            "build net --precision float32 --format executorch --target cpu",
        ),
        (
            Recipe(precision=INT8, format=Format.ONNX),
            "net/int8-full/onnx",
            "add FILE --model net --precision int8-full",
        ),
        (
            Recipe(precision="int4-g128", format=Format.EXECUTORCH),
            "net/int4-g128/executorch",
            "add FILE --model net --precision int4-g128",
        ),
        (
            Recipe(precision=Precision.UNSTATED, format=LITE),
            "net/unstated/lite",
            "add FILE --model net --precision unstated",
        ),
    ],
)
def test_a_name_leaves_out_what_is_usual_and_a_command_says_what_is_not(
    recipe: Recipe, name: str, command: str
) -> None:
    assert variant_name("net", recipe) == name
    assert build_command("net", recipe) == f"farm variant {command}"


OWN = ("int8-dynamic", "w8a16", "int4-g128", "4bit", "q4_k.m", "x" * 32)


@pytest.mark.parametrize("word", [*Precision, *OWN])
def test_a_precision_is_a_word(word: str) -> None:
    assert is_precision(word)
    assert meant_precision(word) is None


@pytest.mark.parametrize(
    "value", ["", "INT8", "int 8", "a/b", "-int8", ".int8", "int8\n", "größe", "x" * 33, 8, True]
)
def test_what_no_name_can_have_is_no_precision(value: object) -> None:
    assert not is_precision(value)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("int8core", "int8-core"), ("int8_full", "int8-full"), ("flaot32", "float32"), ("unstaded", "unstated")],
)
def test_a_word_that_is_close_to_a_known_precision_is_probably_a_slip(word: str, meant: str) -> None:
    assert is_precision(word)
    assert meant_precision(word) == meant


@pytest.mark.parametrize("word", ["bfloat16", "float64", "int8", "int8-static", "float8", "mixed"])
def test_the_name_of_another_format_is_no_slip(word: str) -> None:
    assert meant_precision(word) is None


def test_what_is_no_precision_is_answered_with_those_that_are_known() -> None:
    assert precision_hint("INT8-Core") == "did you mean `int8-core`?"
    assert "or a word of lower-case letters" in precision_hint("W8A16")
    assert "int8-core" in precision_hint("W8A16")


def test_a_recipe_is_the_same_by_a_word_as_by_the_constant() -> None:
    by_word, by_constant = (Recipe(precision=word, format=LITE) for word in ("float32", FLOAT32))
    assert by_word == by_constant
    assert {by_word: 1}[by_constant] == 1
