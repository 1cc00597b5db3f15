"""No pattern that is tried on what a device or a program printed can take exponential time."""

import importlib
import re
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, sources
from tests.architecture.structure.regexes import ambiguous_loop, matching_text

#: Text of strangers is read there; all others match names and durations that people type.
READERS = ("farm/harness", "farm/phone", "farm/core", "farm/wire", "agents")


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    """Yield each compiled pattern of the readers' modules, also within their tables, with its place."""
    for path in sources(*READERS):
        if path.name == "__main__.py":
            continue
        name = module_name(path)
        for variable, value in vars(importlib.import_module(name)).items():
            if not variable.startswith("__"):
                yield from ((f"{name}.{variable}", pattern) for pattern in patterns_within(value))


def patterns_within(value: object, depth: int = 4) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from patterns_within(part, depth - 1)
    elif depth and isinstance(value, dict):
        yield from patterns_within(list(value.items()), depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        yield from patterns_within([getattr(value, field.name) for field in fields(value)], depth - 1)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_pattern_matches_a_text_in_exponentially_many_ways() -> None:
    place_by_pattern = {pattern: place for place, pattern in patterns()}
    assert len(place_by_pattern) > 300
    ambiguous = {
        place: character
        for pattern, place in place_by_pattern.items()
        if (character := ambiguous_loop(pattern)) is not None
    }
    assert ambiguous == {}


#: Four times the text may take sixteen times as long, and somewhat more for what a busy machine adds.
QUADRATIC = 16 * 2
LENGTHS = (300, 1200)


#: Patterns that took seconds for a line of 16,000 characters; a process that parses has ten.
WERE_QUADRATIC = [
    ("farm.harness.onnxruntime.placement", "_ABSENT", "a"),
    ("farm.harness.executorch.placement", "_BETWEEN", " "),
    ("farm.harness.executorch.placement", "_RAW_VALUES", " "),
    ("farm.harness.tflite.output", "_FIELD", "a"),
    ("farm.harness.tflite.placement", "_NONE", "a"),
    ("farm.harness.nnapi.armnn", "_NEXT", "is not supported on requested backend a"),
    ("farm.phone.hardware.nnapi", "_COMMENT", "<!--"),
    ("farm.phone.hardware.nnapi", "_HAL", "<hal "),
]


@pytest.mark.parametrize(("module", "name", "token"), WERE_QUADRATIC)
def test_a_pattern_for_outputs_takes_linear_time_on_a_long_line(module: str, name: str, token: str) -> None:
    pattern = getattr(importlib.import_module(module), name)
    short_s, long_s = (seconds_to_search(pattern, token, length) for length in (4_000, 64_000))
    # Sixteen times the text: quadratic time would be 256 times as long.
    assert long_s < 64 * max(short_s, 0.001)


@pytest.mark.long
def test_no_pattern_takes_cubic_time_on_a_text_that_nearly_matches() -> None:
    slow = {}
    for place, pattern in patterns():
        for rounds in (1, 40, 2000):
            nearly = matching_text(pattern, rounds=rounds)[:-1] + "\0"
            short_s, long_s = (seconds_to_search(pattern, nearly, length) for length in LENGTHS)
            if long_s > 0.02 and long_s > QUADRATIC * short_s:
                slow[place] = (rounds, round(short_s, 4), round(long_s, 4))
    assert slow == {}


def seconds_to_search(pattern: re.Pattern[str] | re.Pattern[bytes], text: str, length: int) -> float:
    """Return the least CPU seconds of three searches through a text that is repeated up to a length."""
    repeated = (text * (length // len(text) + 1))[:length]
    data = repeated.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else repeated
    durations = []
    for _ in range(3):
        began = time.process_time()
        for _ in pattern.finditer(data):  # type: ignore[arg-type]
            pass
        durations.append(time.process_time() - began)
    return min(durations)


@pytest.mark.parametrize(
    "pattern",
    [
        r"available: \[((?:[A-Za-z][\w.-]{0,80},?){1,20})\]",
        r"(a+)+$",
        r"(?:ab|a|b)*c",
        r"(?:a?b?){1,20}c",
        r"(?:\w+\s*)*:",
        r"(?:.*\n?)*x",
    ],
)
def test_a_loop_that_is_matched_in_two_ways_is_found(pattern: str) -> None:
    assert ambiguous_loop(re.compile(pattern)) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+(?:\.\d+)*",
        r"(?:NPU|GPU)(?: \| (?:NPU|GPU))*",
        r"(?:[^()\\]|\\.)*\)",
        r".*?\s\w+\s*x",
        r"(?:a{1,3},)+",
    ],
)
def test_a_loop_that_is_matched_in_one_way_is_not_found(pattern: str) -> None:
    assert ambiguous_loop(re.compile(pattern)) is None
