"""The time that parsing takes grows with the length of a text, not with its square, whatever is in it.

Only growth is judged: the CPU time of a text, and of eight times as much of it.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.architecture.structure.regexes import matching_text
from tests.architecture.structure.test_regexes import patterns_within
from tests.phone.adb.phone_samples import SAMPLES
from tests.support.harness.readers import Reader, entry_points

_OUTPUTS = Path(__file__).parents[1] / "support" / "harness" / "outputs"
_SHORT_CHARS = 2_000
_TIMES = 8
#: Less is not judged: it may be a cache that is filled, or other work of the machine.
_FLOOR_S = 0.02
#: Linear time grows to 8 times as much, quadratic time to 64 times.
_MOST_GROWTH = 24
_RUNS = 3

#: A text of any length.
Text = Callable[[int], str]
_SAMPLES = [
    *(sample.text for sample in SAMPLES.values()),
    *(path.read_text() for path in sorted(_OUTPUTS.rglob("*.*"))),
]
_MUTATIONS: Sequence[Callable[[str], str]] = (
    lambda text: text,
    lambda text: text[: len(text) // 2],
    lambda text: text + text,
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\0"),
    lambda text: text.replace("\n", " "),
)
_TOKENS = (
    *" 0a,.:=\"'(<[{%/\\-*;#@_|>\t\0\n",
    "a ",
    "0 ",
    "0.",
    "[{",
    "ab:",
    "a=0 ",
    "<!--",
    "\n\t",
    "\r\n",
    "\x1b[",
    "*a",
)


def repeated(token: str) -> Text:
    return lambda length: (token * (length // len(token) + 1))[:length]


def continued(head: str, filler: str) -> Text:
    return lambda length: head + filler * (length - len(head))


def texts(name: str) -> Iterator[tuple[str, Text]]:
    """Yield texts of any length for an entry point, by what they consist of."""
    for token in (*_TOKENS, *own_tokens(name)):
        yield repr(token), repeated(token)
    for head in {matching_text(pattern, rounds=1) for pattern in own_patterns(name)}:
        for length in sorted({1, 2, 4, 8, len(head) // 2, len(head)}):
            for filler in " a0":
                yield f"{head[:length]!r}, {filler!r}..", continued(head[:length], filler)
    for sample in _SAMPLES:
        for number, mutated in enumerate(_MUTATIONS):
            yield f"{sample[:30]!r}.., mutation {number}", repeated(mutated(sample))


def own_tokens(name: str) -> Iterator[str]:
    """Yield what the patterns of an entry point's module match or nearly match."""
    for pattern in own_patterns(name):
        for rounds, branch in ((1, 0), (3, 0), (1, 1), (1, 2), (2, 4)):
            if token := matching_text(pattern, rounds=rounds, branch=branch):
                yield from (token, f"{token}\n", f"{token} ", f"{token[:-1]}\0")


def own_patterns(name: str) -> list[re.Pattern[str] | re.Pattern[bytes]]:
    module = name.partition(" ")[0]
    while module not in sys.modules:
        module = module.rpartition(".")[0]
    return [*patterns_within(vars(sys.modules[module]))]


def growth(read: Reader, text: Text) -> float | None:
    """Return how many times as long the reading of eight times the text takes; None where it is short."""
    long_text = text(_SHORT_CHARS * _TIMES)
    if seconds(read, long_text, runs=1) < _FLOOR_S:
        return None
    short_s, long_s = (seconds(read, each, runs=_RUNS) for each in (text(_SHORT_CHARS), long_text))
    return long_s / max(short_s, 1e-6) if long_s >= _FLOOR_S else None


def seconds(read: Reader, text: str, *, runs: int) -> float:
    """Return the least CPU seconds of some runs."""
    durations = []
    for _ in range(runs):
        began_s = time.process_time()
        read(text)
        durations.append(time.process_time() - began_s)
    return min(durations)


def slow_readers(texts_of_each: int) -> dict[str, str]:
    """Return which entry points take more than linear time, with the text, for so many texts of each."""
    slow: dict[str, str] = {}
    for name, read in entry_points().items():
        listed = list(texts(name))
        for what, text in Random(name).sample(listed, min(texts_of_each, len(listed))):
            if (grown := growth(read, text)) is not None and grown > _MOST_GROWTH:
                slow[name] = f"{what}: {grown:.0f} times as long"
    return slow


def test_no_entry_point_takes_quadratic_time_on_a_few_hostile_texts() -> None:
    assert slow_readers(1) == {}


@pytest.mark.long
def test_no_entry_point_takes_quadratic_time_on_hostile_texts() -> None:
    assert slow_readers(25) == {}


@pytest.mark.long
def test_quadratic_time_is_noticed_and_linear_time_is_not() -> None:
    quadratic, linear = re.compile("<!--.*?-->"), re.compile(r"<!--.*?(?:-->|\Z)")
    grown = growth(quadratic.findall, repeated("<!--"))
    assert grown is not None
    assert grown > _MOST_GROWTH
    assert growth(linear.findall, repeated("<!--")) is None
    # So often that it is judged.
    grown = growth(lambda text: [linear.findall(text) for _ in range(500)], repeated("<!--"))
    assert grown is not None
    assert grown < _MOST_GROWTH
