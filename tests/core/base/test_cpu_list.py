import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.cpu_list import core_list, core_mask, core_text


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("4-7", (4, 5, 6, 7)),
        ("0,2", (0, 2)),
        ("7,0-1", (0, 1, 7)),
        ("0 1 2 3\n", (0, 1, 2, 3)),
        ("", None),
        ("3-1", None),
        ("0-999", None),
        ("big", None),
        ("-1", None),
    ],
)
def test_cores_are_listed_as_the_kernel_does(text: str, cores: tuple[int, ...] | None) -> None:
    assert core_list(text) == cores


@given(cores=st.sets(st.integers(0, 255), min_size=1))
def test_a_list_survives_being_written(cores: set[int]) -> None:
    assert core_list(core_text(cores)) == tuple(sorted(cores))
    assert int(core_mask(cores), 16).bit_count() == len(cores)


@given(text=st.text(st.sampled_from("0123456789-, \n٣x")))
def test_no_text_makes_it_raise(text: str) -> None:
    core_list(text)


def test_a_mask_has_a_bit_for_each_core() -> None:
    assert (core_mask([4, 5, 6, 7]), core_mask([0, 2])) == ("f0", "5")
