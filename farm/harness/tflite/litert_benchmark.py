"""`litert-benchmark`, the console command of the wheel ai-edge-litert: command line and output."""

from collections.abc import Mapping, Sequence

from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import Flag
from farm.harness.base.placement_probe import placement_of_pass
from farm.harness.base.tool_adapter import (
    count_setting,
    find_unsupported_reason,
    flag_text,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import combined_output, missing_times_failure, time_reading
from farm.harness.failures.classification import classify, unreadable_failure
from farm.harness.failures.runtime_patterns import RUNTIME_PATTERNS
from farm.harness.tflite.litert_output import LitertOutput, litert_output
from farm.harness.tflite.litert_times import litert_metrics, litert_times
from farm.harness.tflite.placement import tflite_placement

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


class LitertBenchmark:
    """Runs `.tflite` files by LiteRT's compiled model; on the CPU that is XNNPACK wherever possible."""

    name: str = "litert-benchmark"
    parser_version: int = 4
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.TFLITE,)
    flags_are_words: bool = False
    backends: Sequence[str] = tuple(_SWITCH_BY_BACKEND)
    clock_covers: str = (
        "one call of the compiled model, through Python, on random input made before; the value is the tool's"
        " mean, in steps of 10 us"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
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

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the tool's mean of its main loop."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        text = combined_output(evidence)
        output = litert_output(text)
        if output.contradicts:
            return unreadable_failure(evidence, "it contains more than one run, and one was requested")
        times = litert_times(output, expected=count_setting(plan.settings, FLAGS, "num_runs"))
        if times is None:
            return missing_times_failure(
                evidence, "there is no complete line `Inference (avg): ... ms (N runs)`"
            )
        placement = placement_of_pass(tflite_placement, text, evidence) or _placement(output)
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
