"""Signs of failure are looked for only where they can be: a text of megabytes is gone through once."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.harness.failure_signs import SIGNS
from farm.harness.runtime_signs import RUNTIME_SIGNS
from farm.harness.sieve import Sieve, sieve_of

EVERY_SIGN = [*SIGNS, *RUNTIME_SIGNS]
PATTERNS = tuple(each.pattern.pattern for each in EVERY_SIGN)
#: A log of ordinary lines.
LOG = "I tflite  : Node 17 of 64 ran on the CPU for 12.5 ms; device well, 0x7fff bytes free\n" * 50


def test_an_ordinary_log_is_searched_for_hardly_any_sign() -> None:
    """For each of some hundred signs by itself the farm took twenty seconds for a full output."""
    assert len(sieve_of(PATTERNS).possible(LOG)) <= 5


@pytest.mark.parametrize("place", range(len(PATTERNS)))
@given(st.data())
def test_a_sign_that_is_there_is_always_looked_for(place: int, data: st.DataObject) -> None:
    pattern = EVERY_SIGN[place].pattern
    said = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    text = data.draw(st.sampled_from(("", LOG))) + said
    if pattern.search(text) is not None:
        assert place in sieve_of(PATTERNS).possible(text)


def test_what_no_word_tells_apart_is_always_possible() -> None:
    assert list(Sieve(["abc", r"\d+"]).possible("nothing")) == [1]
    assert list(Sieve(["abc"]).possible("")) == []


def test_halves_of_surrogate_pairs_are_no_trouble() -> None:
    assert list(Sieve(["abc", "xyz"]).possible("\ud800 abc")) == [0]


@given(st.text())
def test_a_negative_look_ahead_is_left_out_which_only_finds_more(text: str) -> None:
    pattern = r"CODE -(?!1001\b)|ERROR_(?!NO\w)\w"
    if re.search(pattern, text) is not None:
        assert list(Sieve([pattern]).possible(text)) == [0]
