"""Print what others published of MobileNetV2 on phones, each table labelled as a replay.

    farm import examples/mobilenet_v2/published.csv
    python examples/mobilenet_v2/replay.py

It reads tables of published numbers that were imported into the farm, by docs/import.md. They are no
measurements of the farm: a ratio of two published numbers has no interval and no verdict.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from benchfarm import Farm
from farm.cli.farm.demo_table import table
from farm.core.base.units import ratio_text
from farm.wire.documents.results.imports import ExternalResultView

MODEL = "mobilenet_v2"
PUBLISHED = "published"
HEADS = ("precision", "backend", "time", "ratio", "published at")
NS_BY_UNIT = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
LEGEND = """
replay: numbers that others published. This farm has not measured them.
ratio: the time of the first row by that of this one; two published numbers, so no interval and no verdict.
"""


def time_ns(result: ExternalResultView) -> float:
    """Return the time of a number, whose unit was checked when it was imported."""
    return result.value * NS_BY_UNIT[str(result.unit)]


def ordered(results: Sequence[ExternalResultView]) -> list[ExternalResultView]:
    """Return the numbers of a phone: first that which others are compared with, float32 or else the CPU."""

    def rank(result: ExternalResultView) -> tuple[bool, bool]:
        return result.backend != "cpu", json.loads(result.settings)["precision"] != "float32"

    return sorted(results, key=rank)


def heading(result: ExternalResultView) -> str:
    """Return the line above the table of a phone."""
    told = (result.device, result.os, json.loads(result.settings).get("chip"))
    return f"replay: {', '.join(filter(None, told))}: {MODEL}, as published"


def rows(results: Sequence[ExternalResultView]) -> Iterator[list[str]]:
    """Yield the row of each number of a phone, as it was published."""
    first, *_ = results
    for result in results:
        settings = json.loads(result.settings)
        ratio = "" if result is first else ratio_text(time_ns(first) / time_ns(result))
        time = f"{result.value:.6g} {result.unit}"
        yield [settings["precision"], str(result.backend), time, ratio, settings["source"]]


def replay(results: Sequence[ExternalResultView]) -> str:
    """Return a labelled table of each phone."""
    numbers = [result for result in results if result.format == PUBLISHED]
    by_phone = groupby(sorted(numbers, key=lambda result: str(result.device)), lambda result: result.device)
    tables = [ordered(list(of_phone)) for _, of_phone in by_phone]
    return "\n\n".join("\n".join([heading(each[0]), table(HEADS, list(rows(each)))]) for each in tables)


def main() -> None:
    """Print the tables."""
    with Farm() as farm:
        text = replay(list(farm.imports.results(model=MODEL)))
    if not text:
        sys.exit(
            f"no published numbers of {MODEL} were imported: farm import examples/mobilenet_v2/published.csv"
        )
    sys.stdout.write(f"{text}\n{LEGEND}")


if __name__ == "__main__":
    main()
