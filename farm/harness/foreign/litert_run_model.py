"""What LiteRT's `run_model` prints of its runs: first, slowest, fastest and mean, in whole microseconds.

It warms nothing up: its first run is among those that the mean is of.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

_RUNS = re.compile(r"Run model for ([0-9]{1,9}) times$")
_TOOK = re.compile(r"(First|Slowest|Fastest) run took ([0-9]{1,12}) microseconds$")
_MEAN = re.compile(r"All runs took average ([0-9]{1,12}) microseconds$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRuns:
    """Of one start, as far as it came."""

    runs: int | None
    #: By `first`, `slowest`, `fastest`.
    times_us: Mapping[str, int]
    mean_us: int


def model_runs(text: str) -> ModelRuns | None:
    """None where no mean is told, or those of several starts."""
    runs: set[int] = set()
    means: set[int] = set()
    times: dict[str, int] = {}
    for line in plain_lines(text):
        if (match := _RUNS.search(line)) is not None:
            runs.add(int(match[1]))
        elif (match := _TOOK.search(line)) is not None:
            times[match[1].lower()] = int(match[2])
        elif (match := _MEAN.search(line)) is not None:
            means.add(int(match[1]))
    if len(means) != 1:
        return None
    return ModelRuns(runs=runs.pop() if len(runs) == 1 else None, times_us=times, mean_us=means.pop())
