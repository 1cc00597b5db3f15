"""PyTorch Mobile's `speed_benchmark_torch`: the command line of its Android binary, and its output."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from farm.core.base.setting_values import AdapterFlag, Flag, SettingValue
from farm.core.models.variant import TORCH_FORMATS, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.placement import Accelerator, ActualBackend, Placement
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import InputSettings
from farm.harness.base.pass_output import clocked_ms
from farm.harness.base.printed_numbers import stream_step, whole_ns
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import (
    LOADING_RUN,
    ToolHarness,
    ToolPass,
    flag_text,
    pass_stdout,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import LOAD_TIME, load_time
from farm.harness.failures.classification import unreadable_failure
from farm.harness.failures.patterns import GENERIC_PATTERNS
from farm.harness.torch.inputs import input_settings
from farm.harness.torch.output import LastLine, disagreement, last_lines, observer_values_ns
from farm.harness.torch.placement import placement_passes, torch_actual_backend

FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "iter": Flag(default=200, help="timed iterations in one process", minimum=1),
        "warmup": Flag(default=5, help="iterations before the clock counts", minimum=0),
        "pthreadpool_size": Flag(default=1, help="threads; 0 leaves it to the program", minimum=0),
        "use_bundled_input": Flag(default=0, help="which bundled input to run; -1 for none", minimum=-1),
        "input_dims": Flag(default="", help="without a bundled input: 1,3,224,224; several separated by ;"),
        "input_type": Flag(default="", help="without a bundled input: float, uint8_t or int64; several by ;"),
        "input_memory_format": Flag(default="contiguous_format", help="contiguous_format or channels_last"),
        "no_inputs": Flag(default=False, help="the model takes no input"),
        "pytext_len": Flag(default=0, help="without a bundled input: a further one, for PyText", minimum=0),
        "print_output": Flag(default=False, help="run once before the warm-up, and print the output"),
        "use_caching_allocator": Flag(default=False, help="keep allocations between iterations"),
        "vulkan": Flag(default=False, help="what the backend vulkan adds; name that instead"),
        "loading_time": AdapterFlag(
            default=False,
            help="start it once more after the run, and time its loading by what it prints (`load_time`)",
        ),
    }
)

#: Our own program prints on stderr which int8 kernels the machine chose at load; the Android binary does not.
_ENGINE = "quantized engine: "
#: The first line that it prints, behind the loading of the model and the making of inputs; it is flushed.
_LOADED = re.compile(r"^Starting benchmark\.")
_ALWAYS_GIVEN = ("use_bundled_input", "warmup", "iter", "pthreadpool_size")
_CPU, _NNAPI, _VULKAN = "cpu", "nnapi", "vulkan"
_VULKAN_WORD = "--vulkan=true"


class SpeedBenchmarkTorch(ToolHarness):
    """Runs files of TorchScript and the lite interpreter, one observer line for each iteration.

    Its output does not show where it computed, so NNAPI and Vulkan runs have a pass whose log does.
    """

    name = "speed_benchmark_torch"
    parser_version = 8
    flags = FLAGS
    flags_are_words = True
    failure_patterns = GENERIC_PATTERNS
    formats = TORCH_FORMATS
    backends = (_CPU, _NNAPI, _VULKAN)
    metrics = (LOAD_TIME,)
    sustained_flags = SustainedFlags(iterations="iter")
    clock_covers = (
        "forward() only, on one input made before the loop; on vulkan also the copies of input and output to"
        " and from the GPU; samples are cut to whole microseconds"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        refused = super().unsupported(variant, backend)
        is_converted = variant is not None and variant.recipe.target == _NNAPI
        if refused is None and backend == _NNAPI and not is_converted:
            return "the file was not converted for nnapi: its target says what a file was made for"
        return refused

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return the flags that have the tool make inputs, for a file that brings none of its own."""
        return input_settings(self.name, variant, given)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line of the Android binary, unchanged."""
        words = ("--model=${file_model}", *_flag_words(request), "--report_pep=true")
        passes = [*placement_passes(request.backend, words), *_load_passes(request)]
        return tool_plan(self.name, request, words, passes=passes)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return one sample for each observer line, or the last line's mean where there are none.

        Version A's samples are whole milliseconds; where one is cut to 0 the more precise mean is used.
        """
        summaries = last_lines(evidence.stdout)
        if not summaries:
            return unreadable_failure(
                evidence, "there is no complete line 'Main run finished. ... per iter: ...'"
            )
        if len(summaries) > 1:
            return unreadable_failure(evidence, f"{len(summaries)} runs are in it, and one was requested")
        return _reading(plan, evidence, summaries[0])


def _reading(plan: RunPlan, evidence: Evidence, last: LastLine) -> Reading | RunFailure:
    samples = observer_values_ns(evidence.stdout, last.unit)
    expected = _expected_samples(plan)
    if len(samples) > expected:
        return unreadable_failure(evidence, f"{len(samples)} values for {expected} iterations")
    if last.mean_ns <= 0:
        return unreadable_failure(evidence, f"no iteration takes no time: {last.text}")
    against = disagreement(samples, last) if len(samples) == expected else None
    if against is not None:
        return unreadable_failure(evidence, against)
    usable = bool(samples) and min(samples) > 0
    ran, placement = _placement(plan, evidence)
    return Reading(
        samples_ns=tuple(samples) if usable else (),
        mean_ns=None if usable else last.mean_ns,
        expected_samples=expected,
        actual_backend=ran.backend,
        accelerator=ran.accelerator,
        proof=ran.proof,
        clock_step_ns=last.unit if usable else whole_ns(stream_step(last.mean_ns)),
        placement=placement,
        metrics=tuple(
            load_time(evidence.stderr, clocked_ms(pass_stdout(evidence, LOADING_RUN), None, _LOADED))
        ),
    )


def _placement(plan: RunPlan, evidence: Evidence) -> tuple[ActualBackend, Placement | None]:
    """Return what ran, with its proof."""
    command = " ".join(evidence.argv or plan.argv)
    if _VULKAN_WORD in command.split():
        return torch_actual_backend(plan, evidence, _VULKAN)
    if plan.backend == _NNAPI:
        return torch_actual_backend(plan, evidence, _NNAPI)
    proof = f"cpu by construction: a file made for cpu, and no --vulkan in: {command}"
    engines = [line for line in evidence.stderr.splitlines() if line.startswith(_ENGINE)]
    proofs = "; ".join([proof, *engines[:1]])
    return ActualBackend(backend=_CPU, accelerator=Accelerator.CPU, proof=proofs), None


def _load_passes(request: RunRequest) -> Sequence[ToolPass]:
    """Return the pass that times the loading, where that is asked for: one inference, without warm-up."""
    if not setting(request.settings, FLAGS, "loading_time"):
        return ()
    once = replace(request, settings={**request.settings, "iter": 1, "warmup": 0})
    return (ToolPass(name=LOADING_RUN, words=("--model=${file_model}", *_flag_words(once)), clocked=True),)


def _expected_samples(plan: RunPlan) -> int:
    iterations = plan.settings.get("iter", FLAGS["iter"].default)
    return max(1, int(iterations)) if isinstance(iterations, int) else 1


def _flag_words(request: RunRequest) -> list[str]:
    settings = {**request.settings, **({"vulkan": True} if request.backend == _VULKAN else {})}
    values = {
        name: settings.get(name, flag.default)
        for name, flag in FLAGS.items()
        if not isinstance(flag, AdapterFlag)
    }
    return [
        f"--{name}={flag_text(value)}"
        for name, value in values.items()
        if value != FLAGS[name].default or (name in _ALWAYS_GIVEN and name not in request.missing_flags)
    ]
