"""What ExecuTorch prints of language models: the runners' statistics, and the benchmark app's stamps."""

import json
import re
from dataclasses import dataclass

from farm.harness.log_lines import plain_lines

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_TOKENS = re.compile(r"Prompt Tokens: ([0-9]{1,9})\s+Generated Tokens: ([0-9]{1,9})")
_STAMP = re.compile(r"(loadStart|loadEnd|generateStart|generateEnd): ([0-9]{1,15})$")
_APPS_RATE = re.compile(rf"tokens/second: ({_NUMBER})$")
_OBSERVER = re.compile(r"PyTorchObserver\s*(\{[^{}\n]{1,4000}\})")
_TIMES = {
    "Model Load Time": "load_s",
    "Total inference time": "inference_s",
    "Prompt evaluation": "prompt_s",
    "Time to first generated token": "first_token_s",
}
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
    return {
        name: (stamps[end] - stamps[start]) / 1e3
        for name, (start, end) in spans.items()
        if start in stamps and end in stamps and stamps[end] >= stamps[start]
    }


def _observed(text: str) -> dict[str, float]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    names = ("prompt_tokens", "generated_tokens")
    return {name: record[name] for name in names if isinstance(record.get(name), int)}
