"""What variants are called, and which command makes one that is missing."""

import pytest

from farm.core.models.variant import Format, Precision, Recipe, build_command, variant_name

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
            "add FILE --model net --precision float32",
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
