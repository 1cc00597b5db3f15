"""TensorFlow Lite's `benchmark_model`, in all versions: command line and output."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.placement import Placement
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import Flag
from farm.harness.base.placement_probe import NNAPI, placement_of_pass, placement_pass
from farm.harness.base.tool_adapter import (
    ToolPass,
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
from farm.harness.failures.classification import classify, unknown_flag_failure
from farm.harness.failures.runtime_patterns import RUNTIME_PATTERNS
from farm.harness.tflite.flags import ARGUMENTS_BY_BACKEND, FLAGS, PASS_FLAGS, SHORT_RUN, TOOL_DEFAULTS
from farm.harness.tflite.litert_output import litert_output
from farm.harness.tflite.litert_times import litert_metrics, litert_times
from farm.harness.tflite.output import TfliteOutput, tflite_output
from farm.harness.tflite.placement import tflite_placement
from farm.harness.tflite.profile import operator_times

_CPU, _XNNPACK = "cpu", "xnnpack"
_MOST_OPERATORS = 12


class BenchmarkModel:
    """Runs `.tflite` files; it prints a summary of its loop, never single iterations."""

    name: str = "benchmark_model"
    parser_version: int = 4
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.TFLITE,)
    flags_are_words: bool = True
    backends: Sequence[str] = tuple(ARGUMENTS_BY_BACKEND)
    clock_covers: str = (
        "Interpreter::Invoke() only, on random input made before; the value is the tool's own mean of its"
        " main loop, which also runs for at least a second"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
        )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line of the Android binary; profiles and memory come from separate passes."""
        words = _words(request, request.settings)
        pass_flags = [flag for flag in PASS_FLAGS if request.settings.get(flag) is True]
        short = _words(request, {**request.settings, **SHORT_RUN})
        passes = [ToolPass(name=PASS_FLAGS[flag], words=[*short, f"--{flag}=true"]) for flag in pass_flags]
        if request.backend == NNAPI and not setting(request.settings, FLAGS, "nnapi_accelerator_name"):
            passes.append(placement_pass(NNAPI, short))
        return tool_plan(self.name, request, words, passes=passes)

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the tool's mean of its main loop, with its other figures as metrics."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        text = combined_output(evidence)
        output = tflite_output(text)
        if output.unknown_flag is not None:
            return unknown_flag_failure(evidence, output.unknown_flag)
        if output.contradicts:
            return missing_times_failure(
                evidence, "its last line and its loops do not belong to one complete run", ()
            )
        times, metrics = _times(plan, output), list(_metrics(output))
        if times is None:
            table = litert_output(text)
            if table.contradicts:
                return missing_times_failure(
                    evidence, "it contains more than one run, and one was requested", ()
                )
            times = litert_times(table, expected=count_setting(plan.settings, FLAGS, "num_runs"))
            metrics = litert_metrics(table)
        if times is None:
            return missing_times_failure(evidence, "there is no complete line `Inference timings in us: ...`")
        metrics += _pass_metrics(evidence)
        placement = placement_of_pass(tflite_placement, text, evidence)
        reading = time_reading(
            plan, evidence, times, placement=placement, on_cpu=_only_cpu(plan, evidence), metrics=metrics
        )
        return _with_backend_detail(reading, plan, placement) if isinstance(reading, Reading) else reading


def _times(plan: RunPlan, output: TfliteOutput) -> LoopTimes | None:
    """Return the times of the last line, or else of the main loop."""
    if output.mean_us is None:
        return None
    return LoopTimes(
        mean_ns=output.mean_us * 1e3,
        expected=count_setting(plan.settings, FLAGS, "num_runs"),
        summed=output.main.count if output.main else None,
        step_ns=1_000,
    )


def _only_cpu(plan: RunPlan, evidence: Evidence) -> str:
    if plan.backend != _CPU:
        return ""
    return f"cpu by construction: no delegate is in {' '.join(evidence.argv or plan.argv)}"


def _with_backend_detail(reading: Reading, plan: RunPlan, placement: Placement | None) -> Reading:
    """Tell XNNPACK from the tool's own kernels: both run on the CPU, at several times the speed."""
    if plan.backend not in (_CPU, _XNNPACK) or reading.accelerator != _CPU:
        return reading
    shares = () if placement is None else placement.shares
    by_xnnpack = next((share for share in shares if _XNNPACK in share.by.lower()), None)
    if plan.backend == _CPU and by_xnnpack is not None:
        return replace(reading, actual_backend=_XNNPACK, proof=by_xnnpack.line)
    if plan.backend == _XNNPACK and by_xnnpack is None:
        return replace(reading, actual_backend=_CPU, proof="nothing shows that XNNPACK took any node")
    return reading


def _metrics(output: TfliteOutput) -> Iterator[Metric]:
    loop = {} if output.main is None else output.main.figures_us
    yield from lower_is_better(
        {name: loop.get(name) for name in ("min", "max", "median", "p5", "p95", "std")}, "us"
    )
    yield from lower_is_better(
        {"init": output.init_us, "first": output.first_us, "warmup": output.warmup_us}, "us"
    )
    yield from lower_is_better({"memory_init": output.init_mb, "memory_overall": output.overall_mb}, "MB")
    yield from lower_is_better({"memory_peak": output.peak_mb}, "MB")


def _pass_metrics(evidence: Evidence) -> Iterator[Metric]:
    """Yield the figures of diagnostic passes: the time of each kind of operator, and the peak of memory."""
    for tool_pass in evidence.passes:
        text = f"{tool_pass.stdout}\n{tool_pass.stderr}"
        if tool_pass.name == PASS_FLAGS["report_peak_memory_footprint"]:
            yield from lower_is_better({"memory_peak": tflite_output(text).peak_mb}, "MB")
        elif tool_pass.name == PASS_FLAGS["enable_op_profiling"]:
            times = sorted(operator_times(text), key=lambda operator: -operator.average_ms)[:_MOST_OPERATORS]
            yield from lower_is_better(
                {f"op {operator.kind} x{operator.count}": operator.average_ms for operator in times}, "ms"
            )


def _words(request: RunRequest, settings: Mapping[str, SettingValue]) -> list[str]:
    return ["--graph=${file_model}", *_flag_words(request, settings), *_backend_words(request, settings)]


def _flag_words(request: RunRequest, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    """Yield the flags that differ from the tool's defaults, and always those of counts and threads."""
    for name in FLAGS:
        value = setting(settings, FLAGS, name)
        is_given = name in PASS_FLAGS or name in ARGUMENTS_BY_BACKEND[request.backend]
        if not is_given and name not in request.missing_flags and value != TOOL_DEFAULTS.get(name, ""):
            yield f"--{name}={flag_text(value)}"


def _backend_words(request: RunRequest, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    for name, value in ARGUMENTS_BY_BACKEND[request.backend].items():
        # An older program has no XNNPACK to switch off.
        if name in request.missing_flags and request.backend == _CPU:
            continue
        setting_value = settings.get(name)
        yield f"--{name}={flag_text(setting_value) if setting_value else value}"
