"""`litert-benchmark`, the console command of the wheel ai-edge-litert: command line and output.

Its result file has the printed values, rounded alike. LiteRT's native `benchmark_model` ends with the same
table, its deviation without a unit, followed by memory.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from farm.core.base.setting_values import Flag
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.placement_probe import placement_of_pass
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import (
    LOAD_TIME,
    LoopTimes,
    combined_output,
    lower_is_better,
    missing_times_failure,
    time_reading,
)
from farm.harness.failures.classification import unreadable_failure
from farm.harness.tflite.placement import tflite_placement

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
_VALUE = re.compile(
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
#: The printed label of each value in the result file.
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
_LABELS = {LOAD_TIME: "Model initialization", "first": "Warmup (first)", "warmup": "Warmup (avg)"}
_MEMORY_LABELS = {
    "memory_init": "Init footprint",
    "memory_overall": "Overall footprint",
    "memory_peak": "Peak memory",
}
_OF_LOOP = ("min", "max", "median", "p5", "p95", "std")
#: The metrics of `litert_metrics`.
LITERT_METRICS = (*_LABELS, *_OF_LOOP, *_MEMORY_LABELS)
#: It prints two decimals of a millisecond.
_STEP_NS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LitertOutput:
    """The output of a run."""

    #: By printed label, in milliseconds.
    values_ms: Mapping[str, float]
    #: Number of inferences in the average.
    runs: int | None
    #: The accelerators that it was allowed to use: NPU, GPU, CPU.
    accelerators: tuple[str, ...]
    #: True if delegates took the whole model; XNNPACK is one.
    fully_accelerated: bool | None
    #: By printed label, in megabytes; only the native tool has them.
    memory_mb: Mapping[str, float] = field(default_factory=dict)
    #: Different averages: the output of more than one run.
    contradicts: bool = False

    @property
    def mean_ms(self) -> float | None:
        """Return the mean of the main loop."""
        return self.values_ms.get(_MEAN)


def litert_output(text: str) -> LitertOutput:
    """Parse the printed values; where they are missing, the result file's JSON in the same text."""
    values: dict[str, float] = {}
    memory: dict[str, float] = {}
    means: set[float] = set()
    runs: int | None = None
    accelerators: tuple[str, ...] = ()
    accelerated: bool | None = None
    for line in plain_lines(text):
        if (match := _VALUE.search(line) or _DEVIATION.search(line)) is not None:
            values[match[1]] = float(match[2])
            means |= {float(match[2])} if match[1] == _MEAN else set()
            runs = int(match[3]) if match[3] and match[1].startswith("Inference") else runs
        elif (match := _MEMORY.search(line)) is not None:
            memory[match[1]] = float(match[2])
        elif (match := _ACCELERATED.search(line)) is not None:
            accelerated = match[1].lower() == "true"
        elif (match := _ACCELERATORS.search(line)) is not None:
            accelerators = tuple(match[1].split(" | "))
    printed = LitertOutput(
        values_ms=values,
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
        values_ms={
            label: float(latency[key])
            for key, label in _LABEL_BY_KEY.items()
            if isinstance(latency.get(key), int | float) and abs(latency[key]) < 1e12
        },
        runs=runs if isinstance(runs, int) else None,
        accelerators=tuple(map(str, names)) if isinstance(names, list) else (),
        fully_accelerated=accelerated if isinstance(accelerated, bool) else None,
    )


def litert_times(output: LitertOutput, *, expected: int) -> LoopTimes | None:
    """Return the mean of the main loop; None where the table does not have it."""
    if output.mean_ms is None:
        return None
    deviation_ms = output.values_ms.get("Inference (std)")
    low_ms, high_ms, median_ms = (
        output.values_ms.get(f"Inference ({name})") for name in ("min", "max", "median")
    )
    return LoopTimes(
        mean_ns=output.mean_ms * 1e6,
        expected=expected,
        summed=output.runs,
        step_ns=_STEP_NS,
        deviation_ns=None if deviation_ms is None else deviation_ms * 1e6,
        extremes_ns=None if low_ms is None or high_ms is None else (low_ms * 1e6, high_ms * 1e6),
        median_ns=None if median_ms is None else median_ms * 1e6,
    )


def litert_metrics(output: LitertOutput) -> list[Metric]:
    """Return the other values, in milliseconds and megabytes."""
    labels = _LABELS | {name: f"Inference ({name})" for name in _OF_LOOP}
    times = lower_is_better({name: output.values_ms.get(label) for name, label in labels.items()}, "ms")
    return times + lower_is_better(
        {name: output.memory_mb.get(label) for name, label in _MEMORY_LABELS.items()}, "MB"
    )


FLAGS: Mapping[str, Flag] = {
    "num_runs": Flag(default=50, help="timed inferences", minimum=1),
    "warmup_runs": Flag(default=5, help="inferences before the clock counts", minimum=0),
    "num_threads": Flag(default=1, help="threads of the CPU", minimum=1),
    "signature": Flag(default="", help="which signature of the model; empty: the first"),
    "require_full_delegation": Flag(
        default=False, help="gpu, npu: fail where an operator is left to the CPU"
    ),
    "dispatch_library_path": Flag(default="", help="npu: the vendor's dispatch library"),
    "compiler_plugin_path": Flag(default="", help="npu: folder of the vendor's compiler"),
}
_SWITCH_BY_BACKEND: Mapping[str, tuple[str, ...]] = {"cpu": (), "gpu": ("--use_gpu",), "npu": ("--use_npu",)}
_ALWAYS_GIVEN = ("num_runs", "warmup_runs", "num_threads")


class LitertBenchmark(ToolHarness):
    """Runs `.tflite` files by LiteRT's compiled model; on the CPU that is XNNPACK wherever possible."""

    name = "litert-benchmark"
    parser_version = 8
    flags = FLAGS
    formats = (Format.TFLITE,)
    backends = tuple(_SWITCH_BY_BACKEND)
    metrics = LITERT_METRICS
    sustained_flags = SustainedFlags(iterations="num_runs")
    clock_covers = (
        "one call of the compiled model, through Python, on random input made before; the value is the tool's"
        " mean, in steps of 10 us"
    )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan with the console command's arguments."""
        words = ["--model", "${file_model}", *_SWITCH_BY_BACKEND[request.backend]]
        for name, flag in FLAGS.items():
            value = setting(request.settings, FLAGS, name)
            if isinstance(flag.default, bool):
                words += [f"--{name}"] if value else []
            elif name in _ALWAYS_GIVEN or value != flag.default:
                words += [f"--{name}", flag_text(value)]
        return tool_plan(self.name, request, words)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the tool's mean of its main loop."""
        text = combined_output(evidence)
        output = litert_output(text)
        if output.contradicts:
            return unreadable_failure(evidence, "it contains more than one run, and one was requested")
        times = litert_times(output, expected=count_setting(plan.settings, FLAGS, "num_runs"))
        if times is None:
            return missing_times_failure(
                evidence, "there is no complete line `Inference (avg): ... ms (N runs)`"
            )
        placement = placement_of_pass(
            partial(tflite_placement, requested=plan.backend), text, evidence
        ) or _placement(output)
        return time_reading(plan, evidence, times, placement=placement, metrics=litert_metrics(output))


def _placement(output: LitertOutput) -> Placement | None:
    """Return the share of a single accelerator with the whole model; beside the CPU nothing is proven."""
    if not output.accelerators:
        return None
    line = f"Accelerators: {' | '.join(output.accelerators)}; Fully accelerated: {output.fully_accelerated}"
    if output.accelerators == ("CPU",):
        return Placement(shares=(Share(accelerator=Accelerator.CPU, by="LiteRT", line=line),))
    if len(output.accelerators) == 1 and output.fully_accelerated:
        name = output.accelerators[0]
        share = Share(accelerator=Accelerator(name.lower()), by=name, line=line)
        return Placement(shares=(share,))
    return Placement(shares=(), warnings=(f"{line}: what is left over is the CPU's",))
