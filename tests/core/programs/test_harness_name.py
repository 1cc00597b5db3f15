"""Names of harnesses: what is one, and whose it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.programs.harness_name import HARNESS_NAME, base_name, is_own_name, own_name


@pytest.mark.parametrize(
    "name", ["bench", "ann/bench", "a.b@lab.org/x-1_2.3", "0/0", f"{'a' * 64}/{'b' * 64}"]
)
def test_a_name_has_a_person_before_it_or_none(name: str) -> None:
    assert re.fullmatch(HARNESS_NAME, name)


@pytest.mark.parametrize(
    "name", ["", "/bench", "ann/", "a/b/c", "../bench", "ann/..", "a b", "ann/bench\n", "x" * 65, "ä/bench"]
)
def test_a_name_leads_nowhere_else(name: str) -> None:
    assert not re.fullmatch(HARNESS_NAME, name)


PEOPLE = st.text("a.@/ ä\n", min_size=1, max_size=66)
NAMES = st.sampled_from(["bench", "ann/bench", "a/b-1.2"])


@given(PEOPLE, NAMES)
def test_what_is_made_a_persons_own_is_theirs_and_of_no_one_else(person: str, name: str) -> None:
    own = own_name(person, name)
    if own is not None:
        assert is_own_name(own, person)
        assert base_name(own) == base_name(name)
        assert not is_own_name(own, f"{person}x")
        assert not is_own_name(base_name(name), person)
