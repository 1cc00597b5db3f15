"""Keys of submissions: whatever a header says is a key or refused, and a digest is of one request."""

from string import printable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import header_key, idempotency_key
from farm.core.errors import InvalidInput

VISIBLE = "".join(sorted(each for each in printable if each.isprintable() and each not in ' "\\'))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
BODIES = st.dictionaries(st.text(), JSON, max_size=4)


@given(st.text(max_size=200))
def test_a_header_is_a_key_or_is_refused(said: str) -> None:
    try:
        key = header_key(said)
    except InvalidInput:
        return
    assert 1 <= len(key) <= 128
    assert set(key) <= set(VISIBLE)
    assert said in (key, f'"{key}"')


@given(st.text(alphabet=VISIBLE, min_size=1, max_size=128))
def test_quotes_around_a_key_change_nothing(key: str) -> None:
    assert header_key(key) == header_key(f'"{key}"') == key


@pytest.mark.parametrize("said", ["", '""', '"', "a b", "ä", "x" * 129, '"a', "a\\", "a\n"])
def test_what_is_no_key_is_refused_with_a_hint(said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        header_key(said)
    assert "UUID" in refused.value.hint


@given(BODIES, BODIES)
def test_requests_have_the_same_digest_exactly_when_they_ask_the_same(
    one: dict[str, object], other: dict[str, object]
) -> None:
    first, second = idempotency_key("k", "matrices", one), idempotency_key("k", "matrices", other)
    assert (first == second) is (as_json(one) == as_json(other))
    assert idempotency_key("k", "matrices/1/rerun", one) != first


def as_json(value: object) -> object:
    """A value in which what JSON tells apart and Python does not (1 and true) is told apart."""
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return type(value), value
