"""The output of `llama-bench -o jsonl`: one record a line, for each test (README of tools/llama-bench)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: What begins a record, in all versions.
_BEGINNING = '{"build_commit": '
#: Of the tool's mean, which it cuts to a whole number of nanoseconds.
_ROUNDED = 1e-3
_LONGEST_NS = 10**15
_MOST_TOKENS = 10**9


class MalformedRecord(ValueError):
    """A record does not hold what the tool writes of a test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTest:
    """One test: its tokens, and how long each repetition took for them; there is at least one."""

    prompt_tokens: int
    generated_tokens: int
    depth: int
    samples_ns: tuple[int, ...]
    #: All fields, as the tool writes them: its settings are among them.
    fields: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the tool's own name for it."""
        return bench_test_name(self.prompt_tokens, self.generated_tokens, self.depth)

    @property
    def mean_ns(self) -> float:
        """Return the mean of the repetitions."""
        return sum(self.samples_ns) / len(self.samples_ns)

    @property
    def tokens_per_s(self) -> float:
        """Return the mean of the rates of the repetitions, as the tool's own `avg_ts`."""
        tokens = self.prompt_tokens + self.generated_tokens
        return sum(tokens * 1e9 / sample_ns for sample_ns in self.samples_ns) / len(self.samples_ns)


def bench_test_name(prompt: int, generated: int, depth: int) -> str:
    """Return the name of a test as the tool's own table has it: `pp512`, `tg128 @ d512`."""
    parts = [f"pp{prompt}"] if prompt or not generated else []
    parts += [f"tg{generated}"] if generated else []
    return "+".join(parts) + (f" @ d{depth}" if depth else "")


def bench_tests(lines: Sequence[str]) -> list[BenchTest]:
    """Return the tests among the lines, in their order.

    Raises:
        MalformedRecord: a record is damaged, or its mean is not that of its repetitions.
    """
    return [_test(line) for line in lines if line.startswith(_BEGINNING)]


def _test(line: str) -> BenchTest:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedRecord("a record is not whole") from error
    if not isinstance(fields, dict):
        raise MalformedRecord("a record is no object")
    test = BenchTest(
        prompt_tokens=_tokens(fields, "n_prompt"),
        generated_tokens=_tokens(fields, "n_gen"),
        # Of versions before May 2025 it is missing.
        depth=_tokens(fields, "n_depth") if "n_depth" in fields else 0,
        samples_ns=_samples_ns(fields.get("samples_ns")),
        fields=fields,
    )
    _check_mean(test, fields.get("avg_ns"))
    return test


def _tokens(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        raise MalformedRecord(f"{name} of a record is no number of tokens")
    return value


def _samples_ns(values: object) -> tuple[int, ...]:
    if not isinstance(values, list) or not values:
        raise MalformedRecord("a record has no times of repetitions")
    if not all(type(value) is int and 0 < value <= _LONGEST_NS for value in values):
        raise MalformedRecord("a repetition took no time, or too long")
    return tuple(values)


def _check_mean(test: BenchTest, mean_ns: object) -> None:
    if not isinstance(mean_ns, int | float) or not 0 <= mean_ns <= _LONGEST_NS:
        raise MalformedRecord(f"{test.name} has no mean")
    if abs(test.mean_ns - mean_ns) > max(1.0, _ROUNDED * test.mean_ns):
        raise MalformedRecord(
            f"the mean of {test.name} is {mean_ns:.6g} ns, and that of its {len(test.samples_ns)}"
            f" repetitions {test.mean_ns:.6g}"
        )
