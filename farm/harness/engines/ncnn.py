"""ncnn's `benchncnn`: command line and output."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.declared_inputs import unknown_inputs
from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import RunPlan
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.options import InputSettings
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

#: Always with two decimals: fewer mean that it was cut off.
_TIME = r"[0-9]{1,12}\.[0-9]{2}"
_NETWORK = re.compile(
    rf"(\S(?:.{{0,299}}?\S)??)\s+min\s*=\s*({_TIME})\s+max\s*=\s*({_TIME})\s+avg\s*=\s*({_TIME})$"
)
_SETTING = re.compile(r"(loop_count|num_threads|powersave|gpu_device|cooling_down)\s*=\s*(-?[0-9]{1,9})$")
#: `[0 Mali-G72]  queueC=0[2]`; since 2022 number and name, then more of its capabilities.
_DEVICE = re.compile(r"\[([0-9]{1,3}) ([^\]\n]{1,100})\]")
#: After these it prints a row of times like any other. Queries (vkGet..) may be refused.
GOES_ON = re.compile(
    r"not exists or registered|network graph not ready|fopen \S{1,300} failed"
    r"|find_blob_index_by_name \S{1,100} failed|layer load_(?:param|model) .{1,200} failed"
    r"|vk(?!Get)[A-Z]\w{2,60} failed"
)
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
#: Half of the last digit in its row, and a rounding in the other direction.
_ROUNDED_MS = 0.006


@dataclass(frozen=True, slots=True, kw_only=True)
class NcnnOutput:
    """The output of a run."""

    networks: tuple[ResultRow, ...]
    #: loop_count, num_threads, powersave, gpu_device (-1: none), cooling_down.
    settings: Mapping[str, int]
    #: By number, with the line that names it first.
    device_by_number: Mapping[int, str]
    line_by_number: Mapping[int, str]


def ncnn_output(text: str) -> NcnnOutput:
    """Parse the output of any version."""
    networks: list[ResultRow] = []
    settings: dict[str, int] = {}
    names: dict[int, str] = {}
    lines: dict[int, str] = {}
    for line in plain_lines(text):
        if (match := _NETWORK.match(line)) is not None:
            low, high, mean = map(float, match.groups()[1:])
            networks.append(ResultRow(name=match[1], min_ms=low, max_ms=high, mean_ms=mean))
        elif (match := _SETTING.match(line)) is not None:
            settings[match[1]] = int(match[2])
        elif (match := _DEVICE.match(line)) is not None:
            names.setdefault(int(match[1]), match[2].strip())
            lines.setdefault(int(match[1]), line)
    return NcnnOutput(
        networks=tuple(networks), settings=settings, device_by_number=names, line_by_number=lines
    )


class Benchncnn(ToolHarness):
    """Runs a network from its `.param` alone: the tool generates the weights, so it needs no `.bin`."""

    name = "benchncnn"
    parser_version = 6
    flags = FLAGS
    formats = (Format.NCNN,)
    backends = (_CPU, _VULKAN)
    metrics = (*ROW_METRICS, LOAD_TIME)
    sustained_flags = SustainedFlags(iterations="loop_count")
    clock_scope = ClockScope.INFERENCE_AND_COPIES
    clock_covers = (
        "a new extractor, input, run, output brought back; weights are zeros; our runner prints each"
        " inference, ncnn's own tool the mean in steps of 10 us"
    )

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return the shape of the inputs, without which the tool runs nothing."""
        if "shape" in given:
            return {}
        if not variant.inputs or not all(spec.is_complete for spec in variant.inputs):
            return unknown_inputs(self.name, variant)
        return {"shape": _shape(variant)}

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

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return each inference of the one requested network, or where none is printed their mean."""
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
        row = output.networks[0]
        return row_reading(
            plan,
            evidence,
            row,
            expected=count_setting(plan.settings, FLAGS, "loop_count"),
            summed=output.settings.get("loop_count"),
            step_ns=10_000,
            placement=_placement(output),
            on_cpu="cpu by construction: gpu_device is -1" if plan.backend == _CPU else "",
            samples_ms=iterations_ms(text),
            rounded_ms=_ROUNDED_MS,
            metrics=load_time(text),
        )


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
