"""The means that ONNX Runtime GenAI's `model_benchmark` prints (benchmark/c/main.cpp)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
#: Begins the output of a run; it repeats what was asked for.
_HEAD = re.compile(
    r"Batch size: ([0-9]{1,9}), prompt tokens: ([0-9]{1,9}), tokens to generate: ([0-9]{1,9})$"
)
_SECTIONS: Mapping[str, str] = {
    "Prompt processing (time to first token):": "prompt",
    "Token generation:": "generation",
    "Token sampling:": "sampling",
    "E2E generation (entire generation loop):": "whole",
}
_TIME = re.compile(rf"(avg|p50|stddev) \((us|ms)\): {{1,9}}({_NUMBER})$")
_COUNT = re.compile(r"n: {1,16}([0-9]{1,12})(?: \* ([0-9]{1,9}) token\(s\))?$")
#: Its bytes, and since 2026 the same in a larger unit behind them.
_PEAK = re.compile(r"Peak working set size(?: \(bytes\): ([0-9]{1,18})|: ([0-9]{1,18}) bytes \(.{1,40}\))$")
_NS_BY_UNIT: Mapping[str, float] = {"us": 1e3, "ms": 1e6}
_LONGEST_NS = 1e15
#: Rounding of six digits.
_MAY_DIFFER = 0.01
_OUTPUT_BEGIN, _OUTPUT_END = "[OUTPUT BEGIN]", "[OUTPUT END]"
#: `<|user|>`, `<s>`: a tokenizer reads them as one token each, and leaves them out where it writes text.
_TAG = re.compile(r"<[^<>\s]{1,60}>")


class MalformedOutput(ValueError):
    """The output does not hold what the tool prints of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of some times, with their median and deviation, in nanoseconds."""

    mean_ns: float
    median_ns: float
    deviation_ns: float
    #: How many times it is of, and the tokens in each of them.
    count: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOutput:
    """One run: prompts that were processed, and the tokens behind them."""

    batch: int
    prompt_tokens: int
    #: That were asked for, the first one included.
    asked_tokens: int
    prompt: Mean
    #: Of the tokens after the first, each a time.
    generation: Mean
    #: Of the first token, which comes from the prompt.
    sampling: Mean
    peak_bytes: int | None

    @property
    def first_token_ns(self) -> float:
        """Return the mean time until the first token is there."""
        return self.prompt.mean_ns + self.sampling.mean_ns


def benchmark_outputs(lines: Iterable[str]) -> list[BenchmarkOutput]:
    """Return the runs in the lines of an output.

    Raises:
        MalformedOutput: one has not all four means, or they contradict each other.
    """
    blocks: list[list[str]] = []
    for line in lines:
        if _HEAD.search(line) is not None:
            blocks.append([])
        if blocks:
            blocks[-1].append(line.strip())
    return [_output(block) for block in blocks]


def _output(lines: list[str]) -> BenchmarkOutput:
    head = _HEAD.search(lines[0])
    assert head is not None
    values: dict[str, dict[str, float]] = {name: {} for name in _SECTIONS.values()}
    name, peak_bytes = "", None
    for line in lines:
        if line in _SECTIONS:
            name = _SECTIONS[line]
        elif name and (time := _TIME.match(line)) is not None:
            values[name][time[1]] = float(time[3]) * _NS_BY_UNIT[time[2]]
        elif name and (count := _COUNT.match(line)) is not None:
            values[name] |= {"n": int(count[1]), "tokens": int(count[2] or 1)}
        elif (peak := _PEAK.match(line)) is not None:
            peak_bytes = int(peak[1] or peak[2])
    means = {name: _mean(name, found) for name, found in values.items()}
    output = BenchmarkOutput(
        batch=int(head[1]),
        prompt_tokens=int(head[2]),
        asked_tokens=int(head[3]),
        prompt=means["prompt"],
        generation=means["generation"],
        sampling=means["sampling"],
        peak_bytes=peak_bytes,
    )
    _check_whole(output, means["whole"])
    return output


def _mean(name: str, values: Mapping[str, float]) -> Mean:
    if values.keys() != {"avg", "p50", "stddev", "n", "tokens"}:
        raise MalformedOutput(f"there is no whole mean of the {name}")
    if max(values["avg"], values["p50"], values["stddev"]) > _LONGEST_NS or 0 < values["avg"] < 1:
        raise MalformedOutput(f"the mean of the {name} is too long or too short")
    return Mean(
        mean_ns=values["avg"],
        median_ns=values["p50"],
        deviation_ns=values["stddev"],
        count=int(values["n"]),
        tokens=int(values["tokens"]),
    )


def _check_whole(output: BenchmarkOutput, whole: Mean) -> None:
    """Refuse parts that together took longer than the whole."""
    tokens = output.generation.count / max(1, whole.count)
    parts_ns = output.first_token_ns + output.generation.mean_ns * tokens
    if parts_ns > whole.mean_ns * (1 + _MAY_DIFFER):
        raise MalformedOutput(
            f"a repetition took {whole.mean_ns / 1e6:.6g} ms, and its parts {parts_ns / 1e6:.6g} ms"
        )


def generated_text(stdout: str, prompt: str) -> str | None:
    """Return what the model wrote behind a prompt; None where the tool printed no text.

    The tool prints prompt and text together, once, of the first repetition that warms up. Where the prompt is
    not in it, all of it is returned.
    """
    _, begin, rest = stdout.partition(_OUTPUT_BEGIN)
    text, end, _ = rest.rpartition(_OUTPUT_END)
    if not begin or not end:
        return None
    for known in filter(None, (prompt.strip(), _TAG.sub("", prompt).strip())):
        _, found, behind = text.partition(known)
        if found:
            return behind
    return text
