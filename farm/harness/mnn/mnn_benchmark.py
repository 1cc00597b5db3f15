"""MNN's `benchmark.out`: command line and output."""

from collections.abc import Mapping, Sequence

from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import PlanFile, RunPlan
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
from farm.harness.mnn.output import MnnOutput, mnn_output

FLAGS: Mapping[str, Flag] = {
    "loop": Flag(default=20, help="timed inferences", minimum=1),
    "warmup": Flag(default=5, help="inferences before the clock counts", minimum=0),
    "threads": Flag(default=1, help="threads of the CPU; for a GPU MNN's tuning mode", minimum=1),
    "precision": Flag(
        default=0, help="0 as in the model, 1 high, 2 float16 where available, 3 bfloat16", minimum=0
    ),
}
#: MNNForwardType; 0 is the CPU.
_NUMBER_BY_BACKEND: Mapping[str, int] = {"cpu": 0, "opencl": 3, "nnapi": 5, "opengl": 6, "vulkan": 7}
_CPU, _NOT_NAMED = "cpu", "N/A"
#: The tool runs all models of a folder, so it gets one with this model alone.
_FOLDER = "models"


class MnnBenchmark:
    """Runs one `.mnn` file, in a folder of its own."""

    name: str = "mnn_benchmark"
    parser_version: int = 3
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.MNN,)
    flags_are_words: bool = False
    backends: Sequence[str] = tuple(_NUMBER_BY_BACKEND)
    clock_covers: str = (
        "input copied in, session run, output copied out: on GPUs including both copies; the value is the"
        " tool's mean"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
        )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan: folder, loop, warm-up, backend, threads, precision, by position (since 2019-8)."""
        assert request.variant is not None
        variant = request.variant
        file = PlanFile(
            name="model",
            digest=variant.digest,
            size_bytes=variant.size_bytes,
            path=f"{_FOLDER}/model.mnn",
        )
        values = {name: flag_text(setting(request.settings, FLAGS, name)) for name in FLAGS}
        words = ["${work}/" + _FOLDER, values["loop"], values["warmup"]]
        words += [str(_NUMBER_BY_BACKEND[request.backend]), values["threads"], values["precision"]]
        return tool_plan(self.name, request, words, file=file)

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the mean of the one model in the folder."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        output = mnn_output(combined_output(evidence))
        if output.lost is not None:
            return missing_times_failure(
                evidence, f"its GPU lost a part of the work, and it went on: {output.lost}"
            )
        if not output.models:
            return missing_times_failure(
                evidence, "there is no complete line `[ - ] NAME  max = ..  min = ..  avg = ..`"
            )
        if len(output.models) > 1:
            return unreadable_failure(evidence, f"{len(output.models)} models are in it, one was asked for")
        model = output.models[0]
        times = LoopTimes(
            mean_ns=model.mean_ms * 1e6,
            expected=count_setting(plan.settings, FLAGS, "loop"),
            summed=output.loop,
            step_ns=1_000,
        )
        metrics = lower_is_better({"min": model.min_ms, "max": model.max_ms}, "ms")
        return time_reading(
            plan, evidence, times, placement=_placement(output, plan.backend), metrics=metrics
        )


def _placement(output: MnnOutput, backend: str) -> Placement | None:
    """Return the placement: the tool repeats the request, which proves nothing about a GPU.

    MNN's line on a substitute names the missing backend; builds for apps log it, where it is lost.
    """
    if output.instead is not None and ("OpenCL" not in output.instead or backend == "opencl"):
        return Placement(shares=(Share(accelerator=Accelerator.CPU, by="MNN", line=output.instead),))
    if output.forward is None:
        return None
    line = f"Forward type: {output.forward}"
    if output.forward == _NOT_NAMED:
        return Placement(shares=(), warnings=(f"{line}: MNN has no name for {backend}",))
    kind = accelerator_of(output.forward)
    if kind is not Accelerator.CPU:
        return Placement(shares=(), warnings=(f"{line} is what it was told, not what it found",))
    return Placement(shares=(Share(accelerator=kind, by=output.forward, line=line),))
