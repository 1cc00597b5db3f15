"""How many tokens a run of each tool has: of the prompt, in the context, and timed."""

import pytest

from farm.core.base.setting_values import SettingValue
from farm.core.runs.derived.generation import TokenCounts
from farm.harness.base.options import flag_defaults
from farm.harness.registry import get_harness, harness_names

TEXT = "What is the tallest building in the world?"


def counts(name: str, **settings: SettingValue) -> tuple[int | str, int | str, int]:
    """Prompt, context, timed."""
    harness = get_harness(name)
    found = harness.token_counts({**flag_defaults(harness), **settings})
    assert found is not None
    return found.prompt, found.context, found.timed


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        # Alone, the generation is not behind the prompt.
        ("llama-bench", {}, (512, 0, 128)),
        ("llama-bench", {"n_depth": 256}, (512, 256, 128)),
        ("llama-bench", {"n_gen": 0}, (512, 0, 512)),
        ("llama-bench", {"together": True}, (512, 0, 640)),
        ("llama-bench", {"regime": "cold"}, (512, 0, 640)),
        ("llm_bench", {"n_prompt": 64}, (64, 64, 128)),
        ("litert_lm_advanced_main", {}, (TEXT, TEXT, 64)),
        ("litert_lm_advanced_main", {"benchmark_prefill_tokens": 256}, (256, 256, 64)),
        # The first token belongs to the prompt.
        ("llama_main", {"prompt": "w5"}, ("w5", "w5", 64)),
        ("model_benchmark", {"prompt_length": 64}, (64, 64, 127)),
        ("model_benchmark", {}, (TEXT, TEXT, 127)),
    ],
)
def test_tokens_of_prompt_and_context_and_those_that_are_timed(
    name: str, settings: dict[str, SettingValue], expected: tuple[int | str, int | str, int]
) -> None:
    assert counts(name, **settings) == expected


def test_every_tool_of_language_models_says_how_many_and_no_other_does() -> None:
    defaults = {name: flag_defaults(get_harness(name)) for name in harness_names()}
    saying = {name for name in defaults if get_harness(name).token_counts(defaults[name]) is not None}
    with_rates = {name for name in harness_names() if "decode_rate" in get_harness(name).metrics}
    assert saying == with_rates


def test_they_are_shown_in_words() -> None:
    counted = TokenCounts(prompt=512, context=0, timed=128)
    assert str(counted) == "prompt of 512 tokens, 128 tokens timed behind 0"
    text = TokenCounts(prompt=TEXT, context=TEXT, timed=64)
    assert str(text) == "prompt of a text, 64 tokens timed behind those of the text"
