"""`tvm_benchmark`, a program of ours that runs a library compiled by TVM: command line and output."""

import re
from collections.abc import Mapping

from farm.core.base.setting_values import BoundedFlag, Flag, SettingValue
from farm.core.models.declared_inputs import shape_text, unknown_inputs
from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import InputSettings
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import (
    LOAD_TIME,
    LoopTimes,
    combined_output,
    iterations_ms,
    load_time,
    missing_times_failure,
    other_iterations,
    time_reading,
)
from farm.harness.failures.classification import unreadable_failure

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?"
_DEVICE = re.compile(r"Device: cpu\b[^\n]{0,60}")
_MEAN = re.compile(rf"Mean of ([0-9]{{1,9}}) iterations: ({_NUMBER}) ms")
#: The mean is printed with six decimals.
_ROUNDED = 0.001
#: It prints six decimals of a millisecond.
_STEP_NS = 1

#: Each is a line of at most 52 bytes, and 4 MiB of output come back; 25 MB where the run is sustained.
_MOST_RUNS = 80_000
FLAGS: Mapping[str, Flag] = {
    "num_runs": BoundedFlag(default=50, help="timed inferences", minimum=1, maximum=_MOST_RUNS),
    "warmup_runs": Flag(default=5, help="inferences before the clock counts", minimum=0),
    "num_threads": Flag(default=1, help="threads of the CPU", minimum=1),
    "inputs": Flag(
        default="", help="shape and type of each input, as 1x3x224x224:float32;1x16:int64; empty: the file's"
    ),
}


class TvmBenchmark(ToolHarness):
    """Runs a shared library that TVM compiled, by the virtual machine of TVM's runtime."""

    name = "tvm_benchmark"
    parser_version = 1
    flags = FLAGS
    formats = (Format.TVM,)
    flags_are_words = True
    backends = ("cpu",)
    metrics = (LOAD_TIME,)
    sustained_flags = SustainedFlags(iterations="num_runs")
    clock_covers = "one call of the network in TVM's virtual machine, on inputs of ones made before"

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return shapes and types of the inputs, which the file does not state."""
        if given.get("inputs"):
            return {}
        if not variant.inputs or not all(spec.is_complete for spec in variant.inputs):
            return unknown_inputs(self.name, variant)
        return {"inputs": _inputs(variant)}

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan; a run without stated inputs gets those of the variant."""
        values = {name: setting(request.settings, FLAGS, name) for name in FLAGS}
        if not values["inputs"] and request.variant is not None:
            values["inputs"] = _inputs(request.variant)
        words = [f"--{name}={flag_text(value)}" for name, value in values.items()]
        return tool_plan(self.name, request, ["--model=${file_model}", *words])

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the time of each inference."""
        text = combined_output(evidence)
        means = {(int(match[1]), float(match[2])) for match in map(_MEAN.search, plain_lines(text)) if match}
        if not means:
            return missing_times_failure(evidence, "no line says `Mean of N iterations: ... ms`")
        if len(means) > 1:
            return unreadable_failure(evidence, "it contains more than one run, and one was requested")
        [(count, mean_ms)] = means
        samples = iterations_ms(text)
        wrong = other_iterations(samples, mean_ms, summed=count, tolerance_ms=_ROUNDED * mean_ms)
        if wrong is not None:
            return unreadable_failure(evidence, wrong)
        device = _DEVICE.search(text)
        return time_reading(
            plan,
            evidence,
            LoopTimes(
                samples_ns=tuple(round(value * 1e6) for value in samples),
                expected=count_setting(plan.settings, FLAGS, "num_runs"),
                step_ns=_STEP_NS,
            ),
            placement=None,
            on_cpu="" if device is None else f"cpu by construction: {device[0]}",
            metrics=load_time(text),
        )


def _inputs(variant: Manifest) -> str:
    return ";".join(f"{shape_text(spec)}:{spec.dtype}" for spec in variant.inputs)
