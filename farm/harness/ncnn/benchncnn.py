"""ncnn's `benchncnn`: command line and output."""

from collections.abc import Mapping, Sequence

from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import RunPlan
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import Flag
from farm.harness.base.tool_adapter import (
    count_setting,
    find_unsupported_reason,
    flag_text,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import (
    LoopTimes,
    combined_output,
    lower_is_better,
    missing_times_failure,
    time_reading,
)
from farm.harness.failures.classification import classify, unreadable_failure
from farm.harness.failures.runtime_patterns import RUNTIME_PATTERNS
from farm.harness.ncnn.output import GOES_ON, NcnnOutput, ncnn_output

FLAGS: Mapping[str, Flag] = {
    "loop_count": Flag(default=20, help="timed inferences", minimum=1),
    "num_threads": Flag(default=1, help="threads of the CPU", minimum=1),
    "powersave": Flag(default=0, help="0 all cores, 1 little ones, 2 big ones", minimum=0),
    "gpu_device": Flag(default=0, help="vulkan: which GPU", minimum=0),
    "cooling_down": Flag(default=0, help="1 waits ten seconds before the run", minimum=0),
    "shape": Flag(
        default="", help="of the inputs: [224,224,3]; several by comma; empty: those of the variant"
    ),
}
_CPU, _VULKAN = "cpu", "vulkan"


class Benchncnn:
    """Runs a network from its `.param` alone: the tool generates the weights, so it needs no `.bin`."""

    name: str = "benchncnn"
    parser_version: int = 3
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.NCNN,)
    flags_are_words: bool = False
    backends: Sequence[str] = (_CPU, _VULKAN)
    clock_covers: str = (
        "a new extractor, input, run, output brought back; weights are zeros; the value is its mean, in"
        " steps of 10 us"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
        )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan: five numbers by position, then the network and its input shape (since 2023)."""
        numbers = ("loop_count", "num_threads", "powersave", "gpu_device", "cooling_down")
        values = {name: setting(request.settings, FLAGS, name) for name in numbers}
        if request.backend == _CPU:
            values["gpu_device"] = -1
        words = [flag_text(values[name]) for name in numbers]
        shape = str(setting(request.settings, FLAGS, "shape")) or _shape(request.variant)
        words += ["param=${file_model}", *([f"shape={flag_text(shape)}"] if shape else [])]
        return tool_plan(self.name, request, words)

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the mean of the one requested network."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        text = combined_output(evidence)
        # It goes on after the loss of a network or a GPU, and times nothing.
        if GOES_ON.search(text) is not None:
            return missing_times_failure(evidence, "it lost its network or its GPU, and went on")
        output = ncnn_output(text)
        if not output.networks:
            return missing_times_failure(
                evidence, "there is no complete line `NAME  min = ..  max = ..  avg = ..`"
            )
        if len(output.networks) > 1:
            why = (
                f"{len(output.networks)} networks are in it: it is older than `param=`, and ran its own ones"
            )
            return unreadable_failure(evidence, why)
        loop_count = count_setting(plan.settings, FLAGS, "loop_count")
        network = output.networks[0]
        times = LoopTimes(
            mean_ns=network.mean_ms * 1e6,
            expected=loop_count,
            summed=output.settings.get("loop_count"),
            step_ns=10_000,
        )
        placement = _placement(output)
        on_cpu = "cpu by construction: gpu_device is -1" if plan.backend == _CPU else ""
        metrics = lower_is_better({"min": network.min_ms, "max": network.max_ms}, "ms")
        return time_reading(plan, evidence, times, placement=placement, on_cpu=on_cpu, metrics=metrics)


def _placement(output: NcnnOutput) -> Placement | None:
    """Return the placement: the CPU without a GPU; layers without Vulkan code run there too, unreported."""
    number = output.settings.get("gpu_device")
    if number is None:
        return None
    if number < 0:
        share = Share(accelerator=Accelerator.CPU, by="ncnn", line="gpu_device = -1")
        return Placement(shares=(share,))
    name, line = output.device_by_number.get(number), output.line_by_number.get(number)
    if name is None or line is None:
        return Placement(shares=(), warnings=(f"gpu_device = {number}, and no line names that GPU",))
    is_cpu = accelerator_of(name) is Accelerator.CPU
    kind = Accelerator.CPU if is_cpu else Accelerator.GPU
    return Placement(shares=(Share(accelerator=kind, by=name, line=line),))


def _shape(variant: Manifest | None) -> str:
    """Return ncnn's shape, fastest dimension first, without the batch: 1x3x224x200 is [200,224,3]."""
    inputs = () if variant is None else variant.inputs
    shapes = [spec.shape[1:] if len(spec.shape) > 3 else spec.shape for spec in inputs]
    return ",".join(f"[{','.join(map(str, reversed(shape)))}]" for shape in shapes)
