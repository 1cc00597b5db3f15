"""TensorFlow Lite's `benchmark_model`, in all versions: command line and output."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.declared_inputs import InputProblem
from farm.core.models.variant import Format, Manifest
from farm.core.runs.derived.operator_times import operator_metrics
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.placement import Accelerator, Placement, Share, nodes_by_accelerator
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import InputSettings
from farm.harness.base.placement_probe import NNAPI, placement_of_pass, placement_pass
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import (
    RESULT_FILES,
    ToolHarness,
    ToolPass,
    count_setting,
    flag_text,
    result_files,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import (
    LOAD_TIME,
    LONGEST_NS,
    LoopTimes,
    combined_output,
    iterations_ms,
    lower_is_better,
    missing_times_failure,
    other_iterations,
    time_reading,
)
from farm.harness.failures.classification import unknown_flag_failure, unreadable_failure
from farm.harness.tflite.benchmark_result import benchmark_result
from farm.harness.tflite.litert_benchmark import LITERT_METRICS, litert_metrics, litert_output, litert_times
from farm.harness.tflite.model_runtime_info import FLAG, recorded_nodes
from farm.harness.tflite.output import TfliteOutput, operator_times, tflite_output
from farm.harness.tflite.placement import OWN_KERNELS, tflite_placement

FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "num_threads": Flag(default=1, help="threads of the CPU; -1 leaves it to the program", minimum=-1),
        "num_runs": Flag(default=50, help="timed inferences at least", minimum=1),
        "min_secs": Flag(default=1.0, help="and for at least so long, seconds"),
        "max_secs": Flag(default=150.0, help="ended after so long, seconds, whatever their number"),
        "warmup_runs": Flag(default=1, help="inferences before the clock counts, at least", minimum=0),
        "warmup_min_secs": Flag(default=0.5, help="and for at least so long, seconds"),
        "run_delay": Flag(default=-1.0, help="seconds between two inferences; -1 for none"),
        "input_layer": Flag(default="", help="names of inputs, by comma, where the tool cannot detect them"),
        "input_layer_shape": Flag(default="", help="their shapes: 1,224,224,3; several by :"),
        "input_layer_value_range": Flag(
            default="", help="values to fill them with: input,0,255; several by :"
        ),
        "signature_to_run_for": Flag(default="", help="which signature of the model"),
        "allow_fp16": Flag(default=False, help="float32 may be computed as float16"),
        "require_full_delegation": Flag(default=False, help="fail where any operator is left to the CPU"),
        "max_delegated_partitions": Flag(
            default=0, help="at most this many; 0: the delegate decides", minimum=0
        ),
        "min_nodes_per_partition": Flag(default=0, help="0: the delegate decides", minimum=0),
        "gpu_precision_loss_allowed": Flag(default=True, help="gpu: compute in float16"),
        "gpu_experimental_enable_quant": Flag(default=True, help="gpu: take quantized models"),
        "gpu_inference_for_sustained_speed": Flag(default=False, help="gpu: prefer sustained speed"),
        "gpu_backend": Flag(default="", help="gpu: cl or gl; empty: OpenCL, else OpenGL"),
        "nnapi_accelerator_name": Flag(default="", help="nnapi: which driver, by its name on the device"),
        "nnapi_execution_preference": Flag(
            default="", help="nnapi: fast_single_answer, sustained_speed, low_power or undefined"
        ),
        "nnapi_execution_priority": Flag(default="", help="nnapi: default, low, medium or high (Android 11)"),
        "nnapi_allow_fp16": Flag(default=False, help="nnapi: compute in float16"),
        "nnapi_allow_dynamic_dimensions": Flag(default=False, help="nnapi: take models of dynamic size"),
        "nnapi_use_burst_mode": Flag(default=False, help="nnapi: burst mode"),
        "disable_nnapi_cpu": Flag(default=True, help="nnapi: nnapi-reference may not run anything"),
        "hexagon_lib_path": Flag(
            default="", help="hexagon: folder of its libraries; empty: the run's folder"
        ),
        "external_delegate_path": Flag(default="", help="external, qnn: the delegate's library"),
        "external_delegate_options": Flag(default="", help="external, qnn: its options, key:value by ;"),
        "use_xnnpack": Flag(default=False, help="what the backend xnnpack adds; name that instead"),
        "xnnpack_force_fp16": Flag(default=False, help="xnnpack: compute in float16"),
        "enable_op_profiling": Flag(
            default=False, help="times by operator, in a further pass that is not counted"
        ),
        "report_peak_memory_footprint": Flag(
            default=False, help="peak of memory, in a further pass that is not counted"
        ),
        "result_file_path": Flag(
            default=False, help="start-up and memory from the tool's protobuf, in a further pass"
        ),
        "model_runtime_info_output_file": Flag(
            default=False, help="nodes by delegate from the tool's protobuf, in a further pass"
        ),
    }
)

#: The tool's defaults. A flag is passed only where it differs from them; counts and threads are always
#: passed.
TOOL_DEFAULTS: Mapping[str, SettingValue] = MappingProxyType(
    {
        name: flag.default
        for name, flag in FLAGS.items()
        if name not in ("num_threads", "num_runs", "warmup_runs")
    }
)

#: Flags that would slow the measurement, so each has a separate pass.
PASS_FLAGS: Mapping[str, str] = MappingProxyType(
    {"enable_op_profiling": "op_profile", "report_peak_memory_footprint": "memory"}
)
#: Flags that name a file, by its name in the run's folder; one pass writes all. Older tools do not have them.
FILE_FLAGS: Mapping[str, str] = MappingProxyType(
    {"result_file_path": "result.pb", FLAG: "model_runtime_info.pb"}
)
#: Iterations of a pass: of a flag that is given twice one counts, and which one differs by version.
SHORT_RUN: Mapping[str, SettingValue] = MappingProxyType({"num_runs": 10, "min_secs": 0.1})

#: `cpu` is the tool's own kernels: by default newer versions use XNNPACK wherever they can.
ARGUMENTS_BY_BACKEND: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "cpu": {"use_xnnpack": "false"},
        "xnnpack": {"use_xnnpack": "true"},
        "gpu": {"use_gpu": "true"},
        "nnapi": {"use_nnapi": "true"},
        "hexagon": {"use_hexagon": "true", "hexagon_lib_path": "${work}"},
        "qnn": {
            "external_delegate_path": "libQnnTFLiteDelegate.so",
            "external_delegate_options": "backend_type:htp",
        },
        "external": {},
    }
)


_CPU, _XNNPACK = "cpu", "xnnpack"
#: By this fraction; both are printed in steps of a nanosecond.
_MEANS_MAY_DIFFER = 0.001


class BenchmarkModel(ToolHarness):
    """Runs `.tflite` files; the original prints a summary of its loop, our runner single iterations, too."""

    name = "benchmark_model"
    parser_version = 10
    flags = FLAGS
    formats = (Format.TFLITE,)
    flags_are_words = True
    backends = tuple(ARGUMENTS_BY_BACKEND)
    # An operator's time is named after its kind and count.
    metrics = (*LITERT_METRICS, "op *")
    # Loops while either is not reached: `min_secs`, `num_runs`; never longer than `max_secs`.
    sustained_flags = SustainedFlags(seconds=("min_secs", "max_secs"), fixed={"num_runs": 1})
    clock_covers = (
        "Interpreter::Invoke() only, on random input made before, in a main loop that also runs for at least"
        " a second; our runner prints each inference, LiteRT's own tool their mean"
    )

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return names and shapes of inputs whose sizes the file leaves free, where all sizes are known.

        Without them the tool takes the sizes that the file has for that.
        """
        inputs = variant.inputs
        if not any(spec.free for spec in inputs) or not all(spec.is_complete for spec in inputs):
            return {}
        if "input_layer" not in given and not all(spec.name and "," not in spec.name for spec in inputs):
            return InputProblem(
                reason=f"{self.name} sets the shape of an input by its name, which is not known",
                hint="state the flag input_layer yourself",
            )
        filled = {
            "input_layer": ",".join(spec.name for spec in inputs),
            "input_layer_shape": ":".join(",".join(map(str, spec.shape)) for spec in inputs),
        }
        return {flag: value for flag, value in filled.items() if flag not in given}

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line of the Android binary; profiles and memory come from separate passes."""
        words = _words(request, request.settings)
        pass_flags = [flag for flag in PASS_FLAGS if request.settings.get(flag) is True]
        short = _words(request, {**request.settings, **SHORT_RUN})
        passes = [ToolPass(name=PASS_FLAGS[flag], words=[*short, f"--{flag}=true"]) for flag in pass_flags]
        if files := {flag: FILE_FLAGS[flag] for flag in FILE_FLAGS if request.settings.get(flag) is True}:
            named = [f"--{flag}=${{work}}/{file}" for flag, file in files.items()]
            passes.append(ToolPass(name=RESULT_FILES, words=[*short, *named], files=tuple(files.values())))
        if request.backend == NNAPI and not setting(request.settings, FLAGS, "nnapi_accelerator_name"):
            passes.append(placement_pass(NNAPI, short))
        return tool_plan(self.name, request, words, passes=passes)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the tool's mean of its main loop, with its other values as metrics."""
        text = combined_output(evidence)
        dropped_bytes = evidence.stdout_dropped_bytes + evidence.stderr_dropped_bytes
        output = tflite_output(text, is_cut=dropped_bytes > 0)
        if output.unknown_flag is not None:
            return unknown_flag_failure(evidence, output.unknown_flag)
        if output.contradicts:
            return missing_times_failure(
                evidence, "its last line and its loops do not belong to one complete run", ()
            )
        times, metrics = _times(plan, output), list(_metrics(output))
        if times is not None and (iterations := iterations_ms(text)):
            if (wrong := _other_iterations(iterations, times)) is not None:
                return unreadable_failure(evidence, wrong)
            # A run over minutes is judged by its end, which the first iterations do not show.
            if plan.sustained_s is None or len(iterations) >= (times.summed or 0):
                times = _iteration_times(iterations, times)
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
        files = result_files(evidence)
        metrics += _pass_metrics(evidence)
        metrics += _recorded_metrics(files, {metric.name for metric in metrics})
        placement = placement_of_pass(partial(tflite_placement, requested=plan.backend), text, evidence)
        placement = _with_recorded_nodes(placement, text, plan.backend, files)
        reading = time_reading(
            plan, evidence, times, placement=placement, on_cpu=_only_cpu(plan, evidence), metrics=metrics
        )
        return _with_backend_detail(reading, plan, placement) if isinstance(reading, Reading) else reading


def _times(plan: RunPlan, output: TfliteOutput) -> LoopTimes | None:
    """Return the times of the last line, or else of the main loop."""
    if output.mean_us is None:
        return None
    loop_us = output.main.values_us if output.main else {}
    deviation_us = loop_us.get("std")
    has_extremes = "min" in loop_us and "max" in loop_us
    return LoopTimes(
        mean_ns=output.mean_us * 1e3,
        deviation_ns=None if deviation_us is None else deviation_us * 1e3,
        expected=count_setting(plan.settings, FLAGS, "num_runs"),
        summed=output.main.count if output.main else None,
        step_ns=1_000,
        extremes_ns=(loop_us["min"] * 1e3, loop_us["max"] * 1e3) if has_extremes else None,
        median_ns=loop_us["median"] * 1e3 if "median" in loop_us else None,
    )


def _other_iterations(iterations: Sequence[float], times: LoopTimes) -> str | None:
    """Return why the printed iterations, in milliseconds, are not those of the mean; None where they are.

    Fewer than the mean is of are the first of them, whose mean may be another one.
    """
    if len(iterations) < (times.summed or 0):
        return None
    mean_ms = (times.mean_ns or 0.0) / 1e6
    tolerance_ms = _MEANS_MAY_DIFFER * mean_ms
    return other_iterations(iterations, mean_ms, summed=times.summed, tolerance_ms=tolerance_ms)


def _iteration_times(iterations: Sequence[float], times: LoopTimes) -> LoopTimes:
    """Return the times of printed iterations, in milliseconds, in place of their mean.

    Our runner prints the first of a long loop: where that did what was asked for, no more are expected.
    """
    samples_ns = tuple(round(ms * 1e6) for ms in iterations)
    is_done = times.summed is not None and times.summed >= times.expected
    expected = min(times.expected, len(iterations)) if is_done else times.expected
    return LoopTimes(samples_ns=samples_ns, expected=expected, step_ns=1)


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
    loop = {} if output.main is None else output.main.values_us
    yield from lower_is_better(
        {name: loop.get(name) for name in ("min", "max", "median", "p5", "p95", "std")}, "us"
    )
    yield from lower_is_better(
        {LOAD_TIME: output.init_us, "first": output.first_us, "warmup": output.warmup_us}, "us"
    )
    yield from lower_is_better({"memory_init": output.init_mb, "memory_overall": output.overall_mb}, "MB")
    yield from lower_is_better({"memory_peak": output.peak_mb}, "MB")


def _pass_metrics(evidence: Evidence) -> Iterator[Metric]:
    """Yield the values of diagnostic passes: the time of each kind of operator, and the peak of memory."""
    for tool_pass in evidence.passes:
        text = f"{tool_pass.stdout}\n{tool_pass.stderr}"
        if tool_pass.name == PASS_FLAGS["report_peak_memory_footprint"]:
            yield from lower_is_better({"memory_peak": tflite_output(text).peak_mb}, "MB")
        elif tool_pass.name == PASS_FLAGS["enable_op_profiling"]:
            yield from operator_metrics(operator_times(text))


def _recorded_metrics(files: Mapping[str, bytes], printed: Collection[str]) -> list[Metric]:
    """Return start-up and memory by the tool's protobuf, where the run itself did not print them."""
    result = benchmark_result(files.get(FILE_FLAGS["result_file_path"], b""))
    if result is None:
        return []
    memory = result.memory
    values = {
        "memory_init": memory["init_footprint"] / 1024 if "init_footprint" in memory else None,
        "memory_overall": memory["overall_footprint"] / 1024 if "overall_footprint" in memory else None,
        # Without `report_peak_memory_footprint` it is 0 or less.
        "memory_peak": memory["peak_mem"] if memory.get("peak_mem", 0.0) > 0 else None,
    }
    load_ms = result.latency_ms.get("init")
    times = lower_is_better({LOAD_TIME: None if load_ms is None else load_ms * 1e3}, "us")
    return [
        metric
        for metric in (*times, *lower_is_better(values, "MB"))
        # A float of a damaged file may be any number, or none.
        if metric.name not in printed and 0 <= metric.value < LONGEST_NS
    ]


def _with_recorded_nodes(
    placement: Placement | None, text: str, backend: str, files: Mapping[str, bytes]
) -> Placement | None:
    """Return the placement by the nodes that the tool's protobuf states; the text's, where there is none.

    The text names the hardware behind a delegate. Where it counts other nodes, the pass was placed otherwise
    than the run, and proves nothing of it.
    """
    recorded = recorded_nodes(files.get(FILE_FLAGS[FLAG], b""))
    if recorded is None:
        return placement
    if recorded.delegated:
        stated = tflite_placement(text, backend, recorded.delegated)
    else:
        own = Share(accelerator=Accelerator.CPU, by=OWN_KERNELS, nodes=recorded.total, line=recorded.line)
        stated = Placement(shares=(own,), total_nodes=recorded.total)
    counts = {} if placement is None else nodes_by_accelerator(placement)
    if placement is None or stated is None or not any(counts.values()):
        return stated or placement
    if counts != nodes_by_accelerator(stated):
        warning = f"the pass after the run was placed otherwise: {recorded.line}"
        return replace(placement, warnings=(warning, *placement.warnings))
    return replace(stated, warnings=placement.warnings, offered=placement.offered)


def _words(request: RunRequest, settings: Mapping[str, SettingValue]) -> list[str]:
    return ["--graph=${file_model}", *_flag_words(request, settings), *_backend_words(request, settings)]


def _flag_words(request: RunRequest, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    """Yield the flags that differ from the tool's defaults, and always those of counts and threads."""
    for name in FLAGS:
        value = setting(settings, FLAGS, name)
        is_given = name in PASS_FLAGS or name in FILE_FLAGS or name in ARGUMENTS_BY_BACKEND[request.backend]
        if not is_given and name not in request.missing_flags and value != TOOL_DEFAULTS.get(name, ""):
            yield f"--{name}={flag_text(value)}"


def _backend_words(request: RunRequest, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    for name, value in ARGUMENTS_BY_BACKEND[request.backend].items():
        # An older program has no XNNPACK to switch off.
        if name in request.missing_flags and request.backend == _CPU:
            continue
        setting_value = settings.get(name)
        yield f"--{name}={flag_text(setting_value) if setting_value else value}"
