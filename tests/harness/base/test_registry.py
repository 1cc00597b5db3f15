"""Finding harnesses by name."""

import pytest

from farm.core.errors import NotFound
from farm.core.models.variant import BACKEND_AXIS, VARIANT_AXES
from farm.harness.registry import get_harness, harness_names


def test_every_name_finds_its_harness() -> None:
    assert [get_harness(name).name for name in harness_names()] == harness_names()


def test_a_misspelt_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(NotFound, match="speed_benchmark_touch") as caught:
        get_harness("speed_benchmark_touch")
    assert "speed_benchmark_torch" in caught.value.hint


def test_every_flag_has_a_default_and_a_sentence() -> None:
    for name in harness_names():
        for flag in get_harness(name).flags.values():
            assert flag.default is not None
            assert flag.help


@pytest.mark.parametrize("name", harness_names())
def test_no_flag_has_the_name_of_an_axis(name: str) -> None:
    # A cell's value of such a flag would be that of its axis, and nothing could set it.
    assert not {*VARIANT_AXES, BACKEND_AXIS} & get_harness(name).flags.keys()
