"""The table that MNN's `llm_bench -kv true` prints (transformers/llm/engine/tools/llm_bench.cpp)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_RATE = r"([0-9]{1,9}\.[0-9]{2}) ± ([0-9]{1,9}\.[0-9]{2}|-?nan)"
#: A prompt, and the text after it: the columns `llm_demo` and `speed(tok/s)`.
_TEST = re.compile(r"prompt=([0-9]{1,9})<br>decode=([0-9]{1,9})")
_SPEED = re.compile(rf"{_RATE}<br>{_RATE}")
_TIME = re.compile(_RATE)
_TEST_COLUMN, _SPEED_COLUMN, _LOADING_COLUMN = "llm_demo", "speed(tok/s)", "loadingTime(s)"
#: Both rates have two decimals.
STEP = 0.01


class MalformedBenchTable(ValueError):
    """A row does not hold what the tool prints of a test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Tokens per second: the mean over the repetitions, and their deviation."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """A test: its tokens as they were asked for, and the rates of both parts."""

    prompt_tokens: int
    generated_tokens: int
    prefill: Rate
    decode: Rate
    #: The mean of three times that the model was loaded; None where that was not asked for.
    load_s: float | None
    #: All columns by their heads; further ones come and go with versions.
    columns: Mapping[str, str]


def bench_rows(lines: Iterable[str]) -> list[BenchRow]:
    """Return the tests in the lines of an output.

    Raises:
        MalformedBenchTable: a row below the heads has no such columns, or rates that are none.
    """
    heads: list[str] = []
    rows: list[BenchRow] = []
    for line in lines:
        is_row = line.startswith("|")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if is_row else []
        if _TEST_COLUMN in cells and _SPEED_COLUMN in cells:
            heads = cells
        elif heads and cells and not all(cell.strip("-:") == "" for cell in cells):
            rows.append(_row(heads, cells))
    return rows


def _row(heads: list[str], cells: list[str]) -> BenchRow:
    if len(cells) != len(heads):
        raise MalformedBenchTable(f"a row has {len(cells)} columns, and {len(heads)} heads")
    columns = dict(zip(heads, cells, strict=True))
    test, speed = _TEST.fullmatch(columns[_TEST_COLUMN]), _SPEED.fullmatch(columns[_SPEED_COLUMN])
    if test is None or speed is None:
        raise MalformedBenchTable("a row has no test with the rates of prompt and generation")
    row = BenchRow(
        prompt_tokens=int(test[1]),
        generated_tokens=int(test[2]),
        prefill=_rate(speed[1], speed[2]),
        decode=_rate(speed[3], speed[4]),
        load_s=_load_s(columns),
        columns=columns,
    )
    if not row.prefill.mean or not row.decode.mean:
        raise MalformedBenchTable("a row has a rate of 0 tokens/s")
    return row


def _rate(mean: str, deviation: str) -> Rate:
    # The tool subtracts squares: of repetitions that are nearly alike the root is of a negative number.
    return Rate(mean=float(mean), deviation=0.0 if "nan" in deviation else float(deviation))


def _load_s(columns: Mapping[str, str]) -> float | None:
    if _LOADING_COLUMN not in columns:
        return None
    time = _TIME.fullmatch(columns[_LOADING_COLUMN])
    if time is None:
        raise MalformedBenchTable("a row has no time of loading")
    return float(time[1])
