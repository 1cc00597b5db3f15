"""How many tokens a run of each tool has: in the context, and timed, of the prompt and generated."""

import pytest

from farm.core.base.setting_values import SettingValue
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
