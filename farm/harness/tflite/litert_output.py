"""Output and result file of `litert-benchmark`: the same figures, rounded alike.

LiteRT's native `benchmark_model` ends with the same table, its deviation without a unit, followed by memory.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from farm.harness.base.output_lines import plain_lines

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
_FIGURE = re.compile(
    r"(Model initialization|(?:Warmup|Inference) \((?:first|avg|min|max|median|p5|p95)\)):"
    rf"\s+({_NUMBER}) ms"
    r"(?: \(([0-9]{1,9}) runs\))?$"
)
_DEVIATION = re.compile(rf"(Inference \(std\)):\s+({_NUMBER})(?: ms)?()$")
_MEMORY = re.compile(rf"(Init footprint|Overall footprint|Peak memory):\s+({_NUMBER}) MB$")
_ACCELERATED = re.compile(r"Fully accelerated:\s+(True|False)$", re.IGNORECASE)
_ACCELERATORS = re.compile(r"Accelerators:\s+((?:NPU|GPU|CPU)(?: \| (?:NPU|GPU|CPU))*)$")
_MEAN = "Inference (avg)"
_JSON = re.compile(r"^\{\s*\"model\"", re.MULTILINE)
#: The printed label of each figure in the result file.
_LABEL_BY_KEY: Mapping[str, str] = MappingProxyType(
    {
        "init_ms": "Model initialization",
        "warmup_first_ms": "Warmup (first)",
        "warmup_avg_ms": "Warmup (avg)",
        **{
            f"{name}_ms": f"Inference ({name})"
            for name in ("avg", "min", "max", "median", "std", "p5", "p95")
        },
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertOutput:
    """The output of a run."""

    #: By printed label, in milliseconds.
    figures_ms: Mapping[str, float]
    #: How many inferences are in the average.
    runs: int | None
    #: The accelerators that it was allowed to use: NPU, GPU, CPU.
    accelerators: tuple[str, ...]
    #: Whether delegates took the whole model; XNNPACK is one.
    fully_accelerated: bool | None
    #: By printed label, in megabytes; only the native tool has them.
    memory_mb: Mapping[str, float] = field(default_factory=dict)
    #: Different averages: the output of more than one run.
    contradicts: bool = False

    @property
    def mean_ms(self) -> float | None:
        """Return the mean of the main loop."""
        return self.figures_ms.get(_MEAN)


def litert_output(text: str) -> LitertOutput:
    """Parse the printed figures; where they are missing, the result file's JSON in the same text."""
    figures: dict[str, float] = {}
    memory: dict[str, float] = {}
    means: set[float] = set()
    runs: int | None = None
    accelerators: tuple[str, ...] = ()
    accelerated: bool | None = None
    for line in plain_lines(text):
        if (match := _FIGURE.search(line) or _DEVIATION.search(line)) is not None:
            figures[match[1]] = float(match[2])
            means |= {float(match[2])} if match[1] == _MEAN else set()
            runs = int(match[3]) if match[3] and match[1].startswith("Inference") else runs
        elif (match := _MEMORY.search(line)) is not None:
            memory[match[1]] = float(match[2])
        elif (match := _ACCELERATED.search(line)) is not None:
            accelerated = match[1].lower() == "true"
        elif (match := _ACCELERATORS.search(line)) is not None:
            accelerators = tuple(match[1].split(" | "))
    printed = LitertOutput(
        figures_ms=figures,
        runs=runs,
        accelerators=accelerators,
        fully_accelerated=accelerated,
        memory_mb=memory,
        contradicts=len(means) > 1,
    )
    return printed if means else _of_file(text) or printed


def _of_file(text: str) -> LitertOutput | None:
    start = _JSON.search(text)
    if start is None:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start.start() :])
    except (ValueError, RecursionError):
        return None
    latency = document.get("latency")
    if not isinstance(latency, dict):
        return None
    runs, names, accelerated = (
        latency.get("num_runs"),
        document.get("accelerators"),
        document.get("fully_accelerated"),
    )
    return LitertOutput(
        figures_ms={
            label: float(latency[key])
            for key, label in _LABEL_BY_KEY.items()
            if isinstance(latency.get(key), int | float) and abs(latency[key]) < 1e12
        },
        runs=runs if isinstance(runs, int) else None,
        accelerators=tuple(map(str, names)) if isinstance(names, list) else (),
        fully_accelerated=accelerated if isinstance(accelerated, bool) else None,
    )
