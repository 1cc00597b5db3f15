"""Texts that no model is to write."""

import pytest

from farm.core.runs.derived.generation import degenerate_reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text of 64 tokens is blank"),
        (" \n\t\n", "the text of 64 tokens is blank"),
        ("no no no", "the text is 'no' again and again, 3 times"),
        ("no no\nno no\n", "the text is 'no' again and again, 4 times"),
        ("哈哈哈哈哈哈", "the text is '哈' again and again"),
        ("ababababab\nababababab\n", "the text is 'ab' again and again"),
    ],
)
def test_a_blank_text_and_one_token_again_and_again_are_degenerate(text: str, reason: str) -> None:
    assert degenerate_reason(text, tokens=64, iterations=2) == reason


@pytest.mark.parametrize(
    "text", ["yes no", "no no no yes", "Honolulu\nHonolulu\n", "abcabc", "ab" * 20 + "c", "北京是中国的首都"]
)
def test_any_other_text_is_not(text: str) -> None:
    assert degenerate_reason(text, tokens=64, iterations=2) == ""


def test_few_tokens_may_be_the_same() -> None:
    assert degenerate_reason("no no no", tokens=3, iterations=1) == ""
