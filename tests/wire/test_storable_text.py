"""What JSON can write and not every database keeps is found, and nothing else is touched."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.wire.storable_text import is_storable, make_storable


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (rb'"a\u0000b"', rb'"a\ufffdb"'),
        (rb'"\u0000\u0000"', rb'"\ufffd\ufffd"'),
        (rb'"\ud800"', rb'"\ufffd"'),
        (rb'"\uDC00\uD800"', rb'"\ufffd\ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\\u0000"', rb'"\\\ufffd"'),
    ],
)
def test_nul_and_halves_of_pairs_are_replaced(body: bytes, kept: bytes) -> None:
    assert not is_storable(body)
    assert make_storable(body) == kept


@pytest.mark.parametrize(
    "body", [b"", b"\\", rb'"\\u0000"', rb'"\ud83d\ude00"', rb'"\\ud800"', rb'"\u00e9\n\""', rb'"\ud"']
)
def test_all_else_stays_as_it_is(body: bytes) -> None:
    assert is_storable(body)
    assert make_storable(body) == body


@given(st.text(st.characters(min_codepoint=0, max_codepoint=0x1FFFF, categories=None), max_size=20))
def test_every_text_ends_as_one_that_any_database_keeps(text: str) -> None:
    kept = json.loads(make_storable(json.dumps(text).encode()))
    assert "\0" not in kept
    kept.encode()
    assert is_storable(json.dumps(text).encode()) == ("\0" not in text and is_whole(text))


def is_whole(text: str) -> bool:
    """Whether halves of pairs, where there are any, stand together."""
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True
