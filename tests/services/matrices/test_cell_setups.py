"""What differs between the clocks of two cells, and between their tokens."""

from datetime import UTC, datetime

import pytest

from farm.core.base.ids import CellId, DeviceId, MatrixId, digest_of
from farm.core.base.setting_values import SettingValue
from farm.core.programs.bundle import single_file
from farm.harness.base.options import flag_defaults
from farm.harness.registry import get_harness, harness_names
from farm.services.matrices.cell_setups import CellSetups
from farm.store.files.programs import Program
from farm.store.matrices.matrices import CellRow

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
NUMBER_BY_HARNESS = {name: number for number, name in enumerate(harness_names())}


def program(name: str) -> Program:
    digest = digest_of(name.encode())
    return Program(
        program_id=NUMBER_BY_HARNESS[name],
        harness=name,
        abi="any",
        digest=digest,
        bundle=single_file(name, digest, 1),
        definition=None,
        missing_flags=frozenset(),
        created_at=NOON,
        chosen_at=NOON,
        expired_at=None,
    )


def cell(harness: str, **settings: SettingValue) -> CellRow:
    return CellRow(
        cell_id=CellId(1),
        matrix_id=MatrixId(1),
        index=0,
        device_id=DeviceId("phone-1"),
        variant_id=None,
        variant_name=None,
        model=None,
        program_id=NUMBER_BY_HARNESS[harness],
        harness=harness,
        backend="cpu",
        settings={**flag_defaults(get_harness(harness)), **settings},
        replica=1,
        label=harness,
        baseline_index=None,
    )


SETUPS = CellSetups(
    variants={}, programs={NUMBER_BY_HARNESS[name]: program(name) for name in harness_names()}, defaults={}
)


@pytest.mark.parametrize(
    ("baseline", "candidate", "clocks_differ", "tokens_differ"),
    [
        (cell("llama-bench"), cell("llama-bench", threads=4), False, False),
        (cell("llama-bench"), cell("llama-bench", n_gen=64), False, True),
        # The generation is a test of its own, in an empty context.
        (cell("llama-bench"), cell("llama-bench", n_prompt=64), False, False),
        (cell("llama-bench", together=True), cell("llama-bench", together=True, n_prompt=64), False, True),
        (cell("llama-bench", n_gen=0), cell("llama-bench", n_gen=0, n_prompt=64), False, True),
        # As many tokens, but a prompt is processed at once.
        (cell("llama-bench", n_gen=0), cell("llama-bench", n_gen=512), False, True),
        (cell("llama-bench", n_depth=512), cell("llm_bench"), False, False),
        # One generates in an empty context, the other behind the prompt.
        (cell("llama-bench"), cell("llm_bench"), False, True),
        (cell("llama_main", prompt="a"), cell("llama_main", prompt="a"), False, False),
        (cell("llama_main", prompt="a"), cell("llama_main", prompt="b"), False, True),
        (cell("llama_main", prompt="a"), cell("llama_main", prompt="a", num_bos=1), False, True),
        # Of one text, two tools may make different numbers of tokens.
        (cell("llama_main", prompt="a"), cell("litert_lm_advanced_main", input_prompt="a"), False, True),
        (cell("llm_bench"), cell("model_benchmark", prompt_length=512, generation_length=129), True, False),
        (cell("executor_runner"), cell("litert-benchmark"), False, False),
    ],
)
def test_cells_with_other_tokens_are_told_from_those_with_the_same(
    baseline: CellRow, candidate: CellRow, clocks_differ: bool, tokens_differ: bool
) -> None:
    found = SETUPS.clocks(baseline, candidate)
    assert (found["clocks_differ"], found["tokens_differ"]) == (clocks_differ, tokens_differ)
    assert (found["tokens"] is not None) == (found["baseline_tokens"] is not None) == tokens_differ
    assert (found["tokens"] != found["baseline_tokens"]) == tokens_differ


@pytest.mark.parametrize(
    ("candidate", "baseline", "texts"),
    [
        (
            cell("llama-bench", together=True, n_prompt=64),
            cell("llama-bench", n_depth=256),
            (
                "a prompt of 64 tokens and 128 generated tokens timed behind 0 tokens",
                "128 generated tokens timed behind 256 tokens",
            ),
        ),
        (
            cell("llama_main", prompt="a"),
            cell("llama_main", prompt="b"),
            ("64 generated tokens timed behind a text", "64 generated tokens timed behind another text"),
        ),
        (
            cell("llama_main", prompt="a"),
            cell("llama_main", prompt="a", max_new_tokens=33, num_bos=2),
            (
                "64 generated tokens timed behind a text",
                "32 generated tokens timed behind 2 tokens and the same text",
            ),
        ),
        (
            cell("litert_lm_advanced_main", input_prompt="a"),
            cell("llama_main", prompt="a"),
            (
                "64 generated tokens timed behind a text",
                "64 generated tokens timed behind the same text,"
                " of which its tokenizer may make other tokens",
            ),
        ),
        (
            cell("llama-bench", n_gen=64),
            cell("llama_main", prompt="a"),
            ("64 generated tokens timed behind 0 tokens", "64 generated tokens timed behind a text"),
        ),
    ],
)
def test_other_tokens_are_shown_in_words_and_texts_compared(
    candidate: CellRow, baseline: CellRow, texts: tuple[str, str]
) -> None:
    found = SETUPS.clocks(baseline, candidate)
    assert (found["tokens"], found["baseline_tokens"]) == texts
