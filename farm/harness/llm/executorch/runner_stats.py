"""The times that ExecuTorch's runner of language models prints (extension/llm/runner/stats.h)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: What begins the record; the text stands before it.
RECORD = "PyTorchObserver {"
_RECORD = re.compile(rf"{re.escape(RECORD)}(.{{1,1900}})\}}$")
_NUMBER = re.compile(r'"([A-Za-z_]{1,60})":([0-9]{1,15})(?=[,}]|$)')
_UNITS_PER_SECOND = "SCALING_FACTOR_UNITS_PER_SECOND"
#: Each is a time of the wall clock, except the counts.
_NEEDED = (
    "prompt_tokens",
    "generated_tokens",
    "inference_start_ms",
    "prompt_eval_end_ms",
    "first_token_ms",
    "inference_end_ms",
)
_LOAD = ("model_load_start_ms", "model_load_end_ms")


class MalformedStats(ValueError):
    """A record does not hold what the runner prints of a generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerStats:
    """A prompt that was processed, and the text after it."""

    prompt_tokens: int
    #: Without the first one, which comes from the prompt.
    generated_tokens: int
    #: None where the record has none.
    load_ms: float | None
    #: With the tokenization of the prompt.
    prefill_ms: float
    first_token_ms: float
    #: Of the tokens after the first.
    decode_ms: float
    #: The resolution of these times.
    step_ns: int


def runner_stats(lines: Iterable[str]) -> list[RunnerStats]:
    """Return the generations in the lines of an output, without the prefixes of loggers.

    Raises:
        MalformedStats: a record has no times, or they are not in their order.
    """
    records = (_RECORD.match(line) for line in lines)
    return [_stats(record[1]) for record in records if record is not None]


def _stats(record: str) -> RunnerStats:
    numbers = {name: int(digits) for name, digits in _NUMBER.findall(record)}
    if missing := [name for name in _NEEDED if name not in numbers]:
        raise MalformedStats(f"its record has no {missing[0]}")
    units_per_s = numbers.get(_UNITS_PER_SECOND, 1000)
    if units_per_s == 0:
        raise MalformedStats(f"its record has {_UNITS_PER_SECOND} 0")

    def span_ms(start: str, end: str) -> float:
        units = numbers[end] - numbers[start]
        if units < 0:
            raise MalformedStats(f"{end} is before {start}: the clock was set back")
        return units * 1e3 / units_per_s

    return RunnerStats(
        prompt_tokens=numbers["prompt_tokens"],
        generated_tokens=numbers["generated_tokens"],
        load_ms=span_ms(*_LOAD) if numbers.keys() >= set(_LOAD) else None,
        prefill_ms=span_ms("inference_start_ms", "prompt_eval_end_ms"),
        first_token_ms=span_ms("inference_start_ms", "first_token_ms"),
        decode_ms=span_ms("prompt_eval_end_ms", "inference_end_ms"),
        step_ns=10**9 // units_per_s,
    )
