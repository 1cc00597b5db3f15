"""Signs of failure are looked for only where they can be: a text of megabytes is gone through once."""

import re
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.harness.base import log_lines
from farm.harness.base.log_lines import LogLine, matching_lines
from farm.harness.executorch import placement as executorch_placement
from farm.harness.failures.pattern_prefilter import PatternPrefilter, find_prefilter, pattern_prefilter
from farm.harness.failures.patterns import GENERIC_PATTERNS, RUNTIME_PATTERNS
from farm.harness.nnapi import armnn
from farm.harness.nnapi import placement as nnapi_placement
from farm.harness.onnxruntime import placement as onnxruntime_placement
from farm.harness.tflite import delegates
from farm.harness.tflite import placement as tflite_placement
from farm.harness.torch import placement as torch_placement
from tests.support.session.example_count import examples

#: Every module whose patterns say where a model ran.
PLACEMENT_READERS: tuple[ModuleType, ...] = (
    armnn,
    delegates,
    executorch_placement,
    log_lines,
    nnapi_placement,
    onnxruntime_placement,
    tflite_placement,
    torch_placement,
)
EVERY_SIGN = [*GENERIC_PATTERNS, *RUNTIME_PATTERNS]
PATTERNS = tuple(each.pattern.pattern for each in EVERY_SIGN)
#: A log of ordinary lines.
LOG = "I tflite  : Node 17 of 64 ran on the CPU for 12.5 ms; device well, 0x7fff bytes free\n" * 50


def test_an_ordinary_log_is_searched_for_hardly_any_sign() -> None:
    """For each of some hundred signs by itself the farm took twenty seconds for a full output."""
    assert len(pattern_prefilter(PATTERNS).candidate_indexes(LOG)) <= 5


@pytest.mark.parametrize("place", range(len(PATTERNS)))
@settings(max_examples=examples(4, 25))
@given(st.data())
def test_a_sign_that_is_there_is_always_looked_for(place: int, data: st.DataObject) -> None:
    pattern = EVERY_SIGN[place].pattern
    said = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    text = data.draw(st.sampled_from(("", LOG))) + said
    if pattern.search(text) is not None:
        assert place in pattern_prefilter(PATTERNS).candidate_indexes(text)


def test_what_no_word_tells_apart_is_always_possible() -> None:
    assert list(PatternPrefilter(["abc", r"\d+"]).candidate_indexes("nothing")) == [1]
    assert list(PatternPrefilter(["abc"]).candidate_indexes("")) == []


def test_halves_of_surrogate_pairs_are_no_trouble() -> None:
    assert list(PatternPrefilter(["abc", "xyz"]).candidate_indexes("\ud800 abc")) == [0]


@given(st.text())
def test_a_negative_look_ahead_is_left_out_which_only_finds_more(text: str) -> None:
    pattern = r"CODE -(?!1001\b)|ERROR_(?!NO\w)\w"
    if re.search(pattern, text) is not None:
        assert list(PatternPrefilter([pattern]).candidate_indexes(text)) == [0]


def of_placements() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern by which placements are read."""
    for module in PLACEMENT_READERS:
        reader = module.__name__.removeprefix("farm.harness.")
        yield from (
            (f"{reader}.{name}", value) for name, value in vars(module).items() if type(value) is re.Pattern
        )


@pytest.mark.parametrize("pattern", [pytest.param(each, id=name) for name, each in of_placements()])
@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=examples(4, 25))
@given(st.data())
def test_what_tells_of_a_placement_is_looked_for_where_it_may_be(
    pattern: re.Pattern[str], data: st.DataObject
) -> None:
    said = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    sieve = find_prefilter(pattern)
    assert sieve is None or pattern.search(said) is None or sieve.candidate_indexes(f"{LOG}{said}")


def test_a_line_is_found_in_a_long_log_as_in_a_short_one() -> None:
    told = [LogLine(text=f"Node {number} was REFUSED") for number in (1, 2)]
    log = [LogLine(text=line) for line in LOG.splitlines()] * 20
    for pattern, words in (("REFUSED$", 2), (r"^Node 1\b", 1), ("(?i)was refused", 2), ("ACCEPTED", 0)):
        for lines in (told, [*log, *told], [*told, *log]):
            assert len(list(matching_lines(lines, re.compile(pattern)))) == words


def test_a_pattern_that_re2_does_not_take_has_no_sieve_and_one_without_case_has() -> None:
    assert find_prefilter(re.compile(r"(?<=a)b")) is None
    assert find_prefilter(re.compile("QNN", re.IGNORECASE)) is not None
    log = [LogLine(text="x")] * 2000
    assert [
        match[0] for _, match in matching_lines([*log, LogLine(text="qNn")], re.compile("QNN", re.I))
    ] == ["qNn"]
