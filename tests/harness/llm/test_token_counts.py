"""How many tokens a run of each tool has: in the context, and timed, of the prompt and generated."""

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.runs.derived.generation import TokenCounts
from farm.harness.base.options import flag_defaults
from farm.harness.registry import get_harness, harness_names

TEXT = "What is the tallest building in the world?"


def counts(name: str, **settings: SettingValue) -> tuple[int | str, int, int]:
    """Context, prompt, generated."""
    harness = get_harness(name)
    found = harness.token_counts({**flag_defaults(harness), **settings})
    assert found is not None
    return found.context, found.prompt, found.generated


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        # Alone, the generation is not behind the prompt.
        ("llama-bench", {}, (0, 0, 128)),
        ("llama-bench", {"n_depth": 256}, (256, 0, 128)),
        ("llama-bench", {"n_gen": 0}, (0, 512, 0)),
        ("llama-bench", {"together": True}, (0, 512, 128)),
        ("llama-bench", {"regime": "cold"}, (0, 512, 128)),
        ("llm_bench", {"n_prompt": 64}, (64, 0, 128)),
        ("litert_lm_advanced_main", {}, (TEXT, 0, 64)),
        ("litert_lm_advanced_main", {"benchmark_prefill_tokens": 256}, (256, 0, 64)),
        # The first token belongs to the prompt.
        ("llama_main", {"prompt": "w5"}, ("w5", 0, 64)),
        ("model_benchmark", {"prompt_length": 64}, (64, 0, 127)),
        ("model_benchmark", {}, (TEXT, 0, 127)),
    ],
)
def test_tokens_in_the_context_and_those_that_are_timed(
    name: str, settings: dict[str, SettingValue], expected: tuple[int | str, int, int]
) -> None:
    assert counts(name, **settings) == expected


def test_every_tool_of_language_models_says_how_many_and_no_other_does() -> None:
    defaults = {name: flag_defaults(get_harness(name)) for name in harness_names()}
    saying = {name for name in defaults if get_harness(name).token_counts(defaults[name]) is not None}
    with_rates = {name for name in harness_names() if "decode_rate" in get_harness(name).metrics}
    assert saying == with_rates


def test_they_are_shown_in_words() -> None:
    assert str(TokenCounts(context=0, generated=128)) == "128 generated tokens timed behind 0 tokens"
    together = TokenCounts(context=0, prompt=512, generated=128)
    assert str(together) == "a prompt of 512 tokens and 128 generated tokens timed behind 0 tokens"


def test_texts_are_compared_and_not_shown() -> None:
    text = TokenCounts(context=TEXT, generated=64)
    begin = "64 generated tokens timed behind"
    assert str(text) == f"{begin} a text"
    assert text.beside(TokenCounts(context="Hello", generated=64)) == f"{begin} another text"
    same = f"{begin} the same text"
    assert text.beside(TokenCounts(context=TEXT, generated=128)) == same
    tokenized = f"{same}, of which its tokenizer may make other tokens"
    assert text.beside(TokenCounts(context=TEXT, generated=64)) == tokenized
    assert str(TokenCounts(context=TEXT, beginning=2, generated=64)) == f"{begin} 2 tokens and a text"
    assert text.beside(TokenCounts(context=8, generated=64)) == f"{begin} a text"
