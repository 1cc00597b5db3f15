"""Readings from LiteRT's table of results, of its Python tool and of its native one."""

from farm.core.runs.measurement import Metric
from farm.harness.base.tool_result import LoopTimes, lower_is_better
from farm.harness.tflite.litert_output import LitertOutput

_LABELS = {"init": "Model initialization", "first": "Warmup (first)", "warmup": "Warmup (avg)"}
_MEMORY = {
    "memory_init": "Init footprint",
    "memory_overall": "Overall footprint",
    "memory_peak": "Peak memory",
}
_OF_LOOP = ("min", "max", "median", "p5", "p95", "std")
#: It prints two decimals of a millisecond.
_STEP_NS = 10_000


def litert_times(output: LitertOutput, *, expected: int) -> LoopTimes | None:
    """Return the mean of the main loop; None where the table lacks it."""
    if output.mean_ms is None:
        return None
    return LoopTimes(mean_ns=output.mean_ms * 1e6, expected=expected, summed=output.runs, step_ns=_STEP_NS)


def litert_metrics(output: LitertOutput) -> list[Metric]:
    """Return the other figures, in milliseconds and megabytes."""
    labels = _LABELS | {name: f"Inference ({name})" for name in _OF_LOOP}
    times = lower_is_better({name: output.figures_ms.get(label) for name, label in labels.items()}, "ms")
    return times + lower_is_better(
        {name: output.memory_mb.get(label) for name, label in _MEMORY.items()}, "MB"
    )
