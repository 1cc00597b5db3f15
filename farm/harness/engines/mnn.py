"""MNN's `benchmark.out`: command line and output."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from farm.core.base.setting_values import Flag
from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import RunPlan
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import (
    LOAD_TIME,
    ROW_METRICS,
    ResultRow,
    combined_output,
    iterations_ms,
    load_time,
    missing_times_failure,
    row_reading,
)
from farm.harness.failures.classification import unreadable_failure

_TIME = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?ms"
_COLUMNS = rf"max =\s*{_TIME}\s+min =\s*{_TIME}\s+avg =\s*{_TIME}"
_MODEL = re.compile(rf"\[ - \] (\S.{{0,300}}?)\s+{_COLUMNS}")
#: `**CPU** thread=4** precision=2`, and without the stars since 2023.
_FORWARD = re.compile(r"Forward type:\s*\**([\w/]{1,30})\**.{0,200}$")
_LOOP = re.compile(r"Benchmarking\.\.\. loop = ([0-9]{1,9})")
_INSTEAD = re.compile(
    r"Can't Find type ?= ?\d{1,3} backend, use \d{1,3} instead|[Cc]reate Runtime [Ff]ailed"
    r"|Can't create Runtime|OpenCL init error"
)
#: After these it prints a time of work that was not done; without a platform it uses the CPU instead.
_LOST = re.compile(
    r"Build program failed, err|\bERROR CODE : -(?!1001\b)\d{1,5}\b(?!, info:(?:getPlatform|clEvent)\b)"
)
#: After the error of a work group size that was only tried; another one is used.
_TRIED = re.compile(r"lws (?:tune|null) res ")
FLAGS: Mapping[str, Flag] = {
    "loop": Flag(default=20, help="timed inferences", minimum=1),
    "warmup": Flag(default=5, help="inferences before the clock counts", minimum=0),
    "threads": Flag(default=1, help="threads of the CPU; for a GPU MNN's tuning mode", minimum=1),
    # The tool's `precision`, by the name of its type: `precision` is an axis of matrices.
    "precision_mode": Flag(
        default=0, help="0 as in the model, 1 high, 2 float16 where available, 3 bfloat16", minimum=0
    ),
}
#: MNNForwardType; 0 is the CPU.
_NUMBER_BY_BACKEND: Mapping[str, int] = {"cpu": 0, "opencl": 3, "nnapi": 5, "opengl": 6, "vulkan": 7}
#: A mean is printed in steps of 1 us.
_ROUNDED_MS = 0.001
_CPU, _NOT_NAMED = "cpu", "N/A"
#: The tool runs all models of a folder, so it gets one with this model alone.
_FOLDER = "models"


@dataclass(frozen=True, slots=True, kw_only=True)
class MnnOutput:
    """The output of a run."""

    models: tuple[ResultRow, ...]
    #: `CPU`, `OpenCL`, `Vulkan`; `N/A` for a backend without a name. The request, not the result.
    forward: str | None
    loop: int | None
    #: The line which reports that another backend was used than requested.
    instead: str | None
    #: The line which reports that the GPU did not do a part of the work.
    lost: str | None


def mnn_output(text: str) -> MnnOutput:
    """Parse the output of any version."""
    models: list[ResultRow] = []
    forward: re.Match[str] | None = None
    loop: re.Match[str] | None = None
    instead: str | None = None
    lost: str | None = None
    lines = plain_lines(text)
    for line, behind in zip_longest(lines, lines[1:], fillvalue=""):
        if (match := _MODEL.search(line)) is not None:
            high, low, mean = map(float, match.groups()[1:])
            models.append(ResultRow(name=match[1], max_ms=high, min_ms=low, mean_ms=mean))
        forward = _FORWARD.search(line) or forward
        loop = _LOOP.search(line) or loop
        instead = line if _INSTEAD.search(line) else instead
        if lost is None and _LOST.search(line) and not _TRIED.search(behind):
            lost = line
    return MnnOutput(
        models=tuple(models),
        forward=forward[1] if forward else None,
        loop=int(loop[1]) if loop else None,
        instead=instead,
        lost=lost,
    )


class MnnBenchmark(ToolHarness):
    """Runs one `.mnn` file, in a folder of its own."""

    name = "mnn_benchmark"
    parser_version = 6
    flags = FLAGS
    formats = (Format.MNN,)
    backends = tuple(_NUMBER_BY_BACKEND)
    metrics = (*ROW_METRICS, LOAD_TIME)
    sustained_flags = SustainedFlags(iterations="loop")
    clock_scope = ClockScope.INFERENCE_AND_COPIES
    clock_covers = (
        "input copied in, session run, output copied out: on GPUs including both copies; our runner prints"
        " each inference, MNN's own tool their mean"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the tool cannot run the variant on the backend; None when it can."""
        if variant is not None and variant.files:
            return f"{self.name} runs every file of a folder as a model, and this variant has several files"
        return super().unsupported(variant, backend)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan: folder, loop, warm-up, backend, threads, mode, by position (since 2019-8)."""
        values = {name: flag_text(setting(request.settings, FLAGS, name)) for name in FLAGS}
        words = ["${work}/" + _FOLDER, values["loop"], values["warmup"]]
        words += [str(_NUMBER_BY_BACKEND[request.backend]), values["threads"], values["precision_mode"]]
        return tool_plan(self.name, request, words, model_path=f"{_FOLDER}/model.mnn")

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return each inference of the one model in the folder, or where none is printed their mean."""
        text = combined_output(evidence)
        output = mnn_output(text)
        if output.lost is not None:
            return missing_times_failure(evidence, _lost_reason(output.lost))
        if not output.models:
            return missing_times_failure(
                evidence, "there is no complete line `[ - ] NAME  max = ..  min = ..  avg = ..`"
            )
        if len(output.models) > 1:
            return unreadable_failure(evidence, f"{len(output.models)} models are in it, one was asked for")
        row = output.models[0]
        return row_reading(
            plan,
            evidence,
            row,
            expected=count_setting(plan.settings, FLAGS, "loop"),
            summed=output.loop,
            step_ns=1_000,
            placement=_placement(output, plan.backend),
            samples_ms=iterations_ms(text),
            rounded_ms=_ROUNDED_MS,
            metrics=load_time(text),
        )


def _placement(output: MnnOutput, backend: str) -> Placement | None:
    """Return the placement: the tool repeats the request, which proves nothing about a GPU.

    MNN's line on a substitute names the missing backend; builds for apps log it, where it is lost.
    """
    if (substitute := _substitute(output, backend)) is not None or output.forward is None:
        return substitute
    line = f"Forward type: {output.forward}"
    if output.forward == _NOT_NAMED:
        return Placement(shares=(), warnings=(f"{line}: MNN has no name for {backend}",))
    kind = accelerator_of(output.forward)
    if kind is not Accelerator.CPU:
        return Placement(shares=(), warnings=(f"{line} is what it was told, not what it found",))
    return Placement(shares=(Share(accelerator=kind, by=output.forward, line=line),))


def _substitute(output: MnnOutput, backend: str) -> Placement | None:
    if output.instead is None or ("OpenCL" in output.instead and backend != "opencl"):
        return None
    return Placement(shares=(Share(accelerator=Accelerator.CPU, by="MNN", line=output.instead),))


def _lost_reason(line: str) -> str:
    return f"its GPU lost a part of the work, and it went on: {line}"


def substitute_placement(text: str, backend: str) -> Placement | None:
    """Return the placement of an output of MNN in which it took the CPU instead; None where it did not."""
    return _substitute(mnn_output(text), backend)


def lost_work(text: str) -> str | None:
    """Return why an output of MNN is of less work than was asked for; None where nothing says so."""
    line = mnn_output(text).lost
    return None if line is None else _lost_reason(line)
