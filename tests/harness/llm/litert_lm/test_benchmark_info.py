"""LiteRT-LM's BenchmarkInfo, as several of its releases print it."""

import pytest

from farm.harness.base.output_lines import plain_lines
from farm.harness.llm.litert_lm.benchmark_info import (
    BenchmarkInfo,
    MalformedInfo,
    Turn,
    benchmark_infos,
    duration_of,
)
from tests.support.harness import tool_samples as sample

WARM, OLD = (
    (sample.OUTPUTS / "litert_lm" / f"litert_lm_{name}.log").read_text() for name in ("warm", "2025")
)


def infos(text: str) -> list[BenchmarkInfo]:
    return benchmark_infos(plain_lines(text))


def test_each_iteration_is_read_and_the_medians_behind_them_are_not() -> None:
    found = infos(WARM)
    assert [info.decode.duration_ns for info in found] == pytest.approx(
        [131_402_118, 98_282_891, 99_418_114, 97_964_270, 98_992_324, 98_151_818]
    )
    assert {info.prefill.tokens for info in found} == {9}
    assert found[0].first_token_ns == pytest.approx(38.75e6 + 131_402_118 / 64)


def test_the_time_of_the_whole_initialization_is_preferred_to_that_of_its_parts() -> None:
    assert infos(WARM)[0].load_ms == 188.73


def test_of_older_releases_the_parts_are_summed_without_those_of_each_iteration() -> None:
    [info] = infos(OLD)
    assert info.load_ms == 1801.5 + 0.25 + 95.25 + 103.0
    assert info.prefill == Turn(tokens=1024, duration_ns=62.5e9)
    assert info.decode.tokens_per_s == pytest.approx(256 / 9.75)


def test_without_phases_the_load_time_is_unknown() -> None:
    text = "\n".join(line for line in OLD.splitlines() if " ms" not in line)
    assert infos(text)[0].load_ms is None


@pytest.mark.parametrize("prefix", ["", "I/native (12345): ", "[2026-01-02 03:04:05.678] "])
def test_prefixes_of_loggers_hide_nothing(prefix: str) -> None:
    text = "\n".join(prefix + line for line in OLD.splitlines())
    assert infos(text) == infos(OLD)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("98.282891ms", 98_282_891),
        ("1m2.5s", 62.5e9),
        ("1h0m0.25s", 3_600.25e9),
        ("41.2us", 41_200),
        ("7ns", 7),
        ("0", 0),
        ("inf", 0),
        ("1.5", 0),
        ("ms", 0),
    ],
)
def test_durations_are_read_in_all_units_of_abseil(text: str, ns: float) -> None:
    assert duration_of(text) == pytest.approx(ns)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Decode Turn 1", "Decode Turn x", "0 decode turns"),
        ("Processed 256 tokens", "Processed 0 tokens", "0 tokens"),
        ("9.75s", "0", "256 tokens in 0 s"),
        ("9.75s", "99999h0s", "256 tokens in 3.59996e[+]08 s"),
    ],
)
def test_an_iteration_without_a_whole_turn_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(MalformedInfo, match=reason):
        infos(OLD.replace(old, new))


def test_a_second_turn_of_a_conversation_is_refused() -> None:
    line = next(line for line in OLD.splitlines() if "Decode Turn 1" in line)
    with pytest.raises(MalformedInfo, match="2 decode turns"):
        infos(OLD.replace(line, f"{line}\n{line.replace('Turn 1', 'Turn 2')}"))
