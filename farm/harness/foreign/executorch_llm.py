"""What ExecuTorch prints of language models: the runners' statistics, and the benchmark app's stamps."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_TOKENS = re.compile(r"Prompt Tokens: ([0-9]{1,9})\s+Generated Tokens: ([0-9]{1,9})")
_STAMP = re.compile(r"(loadStart|loadEnd|generateStart|generateEnd): ([0-9]{1,15})$")
_APPS_RATE = re.compile(rf"tokens/second: ({_NUMBER})$")
_OBSERVER = re.compile(r"PyTorchObserver\s*(\{[^{}\n]{1,4000}\})")
#: What the runner's own line of stamps, and those of its report, are the times between.
_OBSERVED_SPANS: Mapping[str, tuple[str, str]] = {
    "load_s": ("model_load_start_ms", "model_load_end_ms"),
    "inference_s": ("inference_start_ms", "inference_end_ms"),
    "prompt_s": ("inference_start_ms", "prompt_eval_end_ms"),
    "generate_s": ("prompt_eval_end_ms", "inference_end_ms"),
    "first_token_s": ("inference_start_ms", "first_token_ms"),
}
_PER_SECOND = "SCALING_FACTOR_UNITS_PER_SECOND"
_TIMES = {
    "Model Load Time": "load_s",
    "Total inference time": "inference_s",
    "Prompt evaluation": "prompt_s",
    "Time to first generated token": "first_token_s",
}
#: MediaTek's runner has lines of its own.
_ANALYZED = re.compile(rf"Done analyzing prompt in ({_NUMBER}) sec\b")
_SPEED = re.compile(rf"Token generation speed: ({_NUMBER}) tok/s")
_TIME = re.compile(rf"({'|'.join(_TIMES)}):\s+({_NUMBER}) \(seconds\)")
_GENERATED = re.compile(
    rf"Generated ([0-9]{{1,9}}) tokens:\s+({_NUMBER}) \(seconds\)\s+Rate:\s+({_NUMBER}) \(tokens/second\)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmStats:
    """Figures of one generation; None for what was not printed or measured: a time of 0 s was not."""

    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    tokens_per_s: float | None = None
    load_s: float | None = None
    inference_s: float | None = None
    prompt_s: float | None = None
    generate_s: float | None = None
    first_token_s: float | None = None


def llm_stats(text: str) -> LlmStats | None:
    """Read either form; None where the text has no figure of it."""
    found: dict[str, float] = {}
    stamps: dict[str, int] = {}
    for line in plain_lines(text):
        if (match := _TOKENS.search(line)) is not None:
            found |= {"prompt_tokens": int(match[1]), "generated_tokens": int(match[2])}
        elif (match := _TIME.search(line)) is not None:
            found[_TIMES[match[1]]] = float(match[2])
        elif (match := _GENERATED.search(line)) is not None:
            found |= {"generate_s": float(match[2]), "tokens_per_s": float(match[3])}
        elif (match := _ANALYZED.search(line)) is not None:
            found["prompt_s"] = float(match[1])
        elif (match := _SPEED.search(line)) is not None:
            found["tokens_per_s"] = float(match[1])
        elif (match := _STAMP.match(line)) is not None:
            stamps[match[1]] = int(match[2])
        elif (match := _APPS_RATE.match(line)) is not None:
            found["tokens_per_s"] = float(match[1])
        elif (match := _OBSERVER.search(line)) is not None:
            found = {**_observed(match[1]), **found}
    found |= _spans(stamps)
    found = {name: value for name, value in found.items() if value or not name.endswith("_s")}
    return _stats(found) if found else None


def _stats(found: dict[str, float]) -> LlmStats:
    def count(name: str) -> int | None:
        return round(found[name]) if name in found else None

    return LlmStats(
        prompt_tokens=count("prompt_tokens"),
        generated_tokens=count("generated_tokens"),
        tokens_per_s=found.get("tokens_per_s"),
        load_s=found.get("load_s"),
        inference_s=found.get("inference_s"),
        prompt_s=found.get("prompt_s"),
        generate_s=found.get("generate_s"),
        first_token_s=found.get("first_token_s"),
    )


def _spans(stamps: dict[str, int]) -> dict[str, float]:
    """The app's stamps are milliseconds of the phone's clock."""
    spans = {"load_s": ("loadStart", "loadEnd"), "generate_s": ("generateStart", "generateEnd")}
    return _between(stamps, spans, 1000)


def _between(
    stamps: Mapping[str, int], spans: Mapping[str, tuple[str, str]], per_second: int
) -> dict[str, float]:
    return {
        name: (stamps[end] - stamps[start]) / per_second
        for name, (start, end) in spans.items()
        if per_second > 0 and start in stamps and end in stamps and stamps[end] >= stamps[start]
    }


def _observed(text: str) -> dict[str, float]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(record, dict):
        return {}
    figures = {
        name: value for name, value in record.items() if isinstance(value, int) and abs(value) < 10**15
    }
    counts = {name: figures[name] for name in ("prompt_tokens", "generated_tokens") if name in figures}
    return counts | _between(figures, _OBSERVED_SPANS, figures.get(_PER_SECOND, 0))
