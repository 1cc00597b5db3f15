"""A suggestion is made where it is likelier right than wrong."""

import pytest

from farm.core.base.spec_errors import closest_name, name_hint

NAMES = ("cpu", "nnapi", "vulkan", "float32", "mobilenet_v2", "Pixel 7", "threads")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("cup", "cpu"),
        ("CPU", "cpu"),
        ("vulcan", "vulkan"),
        ("napi", "nnapi"),
        ("tread", "threads"),
        ("flaot32", "float32"),
        ("mobilnet_v2", "mobilenet_v2"),
        ("pixl 7", "Pixel 7"),
    ],
)
def test_a_slip_is_told_with_the_name_that_was_meant(word: str, meant: str) -> None:
    assert closest_name(word, NAMES) == meant


@pytest.mark.parametrize("word", ["gpu", "npu", "float16", "mobilenet_v3", "Pixel 8", "int8"])
def test_another_thing_is_not_taken_for_a_slip(word: str) -> None:
    assert closest_name(word, NAMES) is None
    assert name_hint(word, NAMES).startswith("known here: ")
