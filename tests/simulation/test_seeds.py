"""Seeds are named on a command line: whatever is no seed is refused with how to write one."""

from argparse import ArgumentTypeError
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.seeds import MOST, seeds_in


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("17", [17]),
        ("0-3", [0, 1, 2, 3]),
        ("47,48", [47, 48]),
        ("40-42, 7,41", [40, 41, 42, 7]),
    ],
)
def test_seeds_are_one_a_range_or_several_of_them(text: str, seeds: list[int]) -> None:
    assert list(seeds_in(text)) == seeds


@pytest.mark.parametrize(
    "text", ["", "x", "1-", "-3", "1..3", "1,,2", "3-1", f"0-{MOST}", "9" * 30, "\u0661"]
)
def test_what_is_no_seed_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"write|in parts"):
        seeds_in(text)


@given(st.text())
def test_whatever_is_asked_for_is_seeds_or_a_refusal(text: str) -> None:
    with suppress(ArgumentTypeError):
        assert all(seed >= 0 for seed in seeds_in(text))
