"""ONNX Runtime's `onnxruntime_perf_test`: command line and output."""

from collections.abc import Iterator, Mapping, Sequence

from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import Flag
from farm.harness.base.placement_probe import placement_of_pass, placement_pass
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
from farm.harness.onnxruntime.output import OrtOutput, ort_output
from farm.harness.onnxruntime.placement import ort_placement

FLAGS: Mapping[str, Flag] = {
    "repeated_times": Flag(default=100, help="timed inferences (-r)", minimum=1),
    "intra_op_num_threads": Flag(default=1, help="threads within an operator (-x); 0 leaves it", minimum=0),
    "inter_op_num_threads": Flag(default=1, help="threads over operators (-y); 0 leaves it", minimum=0),
    "optimization_level": Flag(default=99, help="of the graph (-o): 0 none, 1 basic, 2 extended, 99 all"),
    "parallel_executor": Flag(default=False, help="run operators at the same time (-P)"),
    "free_dimension_override": Flag(
        default="", help="name:value of a free dimension (-f); several by blanks"
    ),
    "provider_options": Flag(default="", help="key|value of the backend (-i); several by blanks"),
    "session_config": Flag(default="", help="key|value of the session (-C); several by blanks"),
    "generate_input": Flag(
        default=True, help="generate inputs (-I); otherwise test data must be beside the model"
    ),
    "verbose": Flag(default=False, help="log what is done (-v), which slows nothing but loading"),
}
#: The file of each iteration's time: the run's own output, which is stored.
_RESULT_FILE = "/proc/self/fd/1"
_CPU = "cpu"
#: Rounding of six digits, and the loop around the clock.
_MEANS_MAY_DIFFER = 0.05


class OnnxruntimePerfTest:
    """Runs `.onnx` and `.ort` files; its result file has one line for each iteration."""

    name: str = "onnxruntime_perf_test"
    parser_version: int = 3
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.ONNX, Format.ORT)
    flags_are_words: bool = False
    backends: Sequence[str] = (_CPU, "xnnpack", "nnapi", "qnn", "acl", "webgpu")
    clock_covers: str = (
        "Session::Run() only, on inputs made before the loop; one inference comes before the first timed one"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
        )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line of the Android binary. Without `-v` a provider reports no nodes."""
        words = list(_words(request.settings, request.backend))
        passes = []
        if request.backend != _CPU and not setting(request.settings, FLAGS, "verbose"):
            few = {**request.settings, "repeated_times": 1, "verbose": True}
            words_of_pass = [*_words(few, request.backend), "${file_model}", "${work}/placement.csv"]
            passes = [placement_pass(request.backend, words_of_pass)]
        return tool_plan(self.name, request, [*words, "${file_model}", _RESULT_FILE], passes=passes)

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return one sample for each iteration, or else the tool's average."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        text = combined_output(evidence)
        output = ort_output(text)
        if output.contradicts:
            return unreadable_failure(evidence, "it contains more than one run, and one was requested")
        if output.mean_ns is None and not output.samples_ns:
            return missing_times_failure(
                evidence, "there is no complete line `Average inference time cost: ... ms`"
            )
        if (wrong := _disagreement(output)) is not None:
            return unreadable_failure(evidence, wrong)
        placement = placement_of_pass(ort_placement, text, evidence)
        on_cpu = "cpu by construction: no other provider is in its command" if plan.backend == _CPU else ""
        return time_reading(
            plan,
            evidence,
            _times(plan, output),
            placement=placement,
            on_cpu=on_cpu,
            metrics=list(_metrics(output)),
        )


def _times(plan: RunPlan, output: OrtOutput) -> LoopTimes:
    expected = count_setting(plan.settings, FLAGS, "repeated_times")
    if output.samples_ns:
        return LoopTimes(samples_ns=output.samples_ns, expected=expected)
    return LoopTimes(mean_ns=output.mean_ns, expected=expected, summed=output.requests)


def _disagreement(output: OrtOutput) -> str | None:
    """Return how the samples contradict the tool's own figures; None when they agree."""
    count, requests = len(output.samples_ns), output.requests
    if count == 0:
        return None
    if not output.samples_are_whole or (requests is not None and requests != count):
        return f"{count} of its samples came, of {requests or 'an unknown number of'} inferences"
    mean_ns = sum(output.samples_ns) / count
    if output.mean_ns is not None and abs(mean_ns - output.mean_ns) > _MEANS_MAY_DIFFER * output.mean_ns:
        average_text = f"its {count} values average {mean_ns / 1e6:.6g} ms"
        return f"{average_text}, its own line says {output.mean_ns / 1e6:.6g} ms"
    return None


def _metrics(output: OrtOutput) -> Iterator[Metric]:
    of_time = {"first": "first_ns", "session_creation": "creation_ns"}
    summed = {
        "min": "min_ns",
        "max": "max_ns",
        "p50": "p50_ns",
        "p90": "p90_ns",
        "p95": "p95_ns",
        "p99": "p99_ns",
    }
    figures = {**of_time, **({} if output.samples_ns else summed)}
    times = {name: output.figures.get(field) for name, field in figures.items()}
    yield from lower_is_better({name: None if ns is None else ns / 1e6 for name, ns in times.items()}, "ms")
    peak = output.figures.get("peak_bytes")
    yield from lower_is_better({"memory_peak": None if peak is None else peak / 1e6}, "MB")
    yield from lower_is_better({"cpu": output.figures.get("cpu_pct")}, "%")


def _words(settings: Mapping[str, SettingValue], backend: str) -> Iterator[str]:
    def of(name: str) -> SettingValue:
        return setting(settings, FLAGS, name)

    yield from ("-e", backend, "-m", "times", "-r", flag_text(of("repeated_times")))
    yield from ("-x", flag_text(of("intra_op_num_threads")), "-y", flag_text(of("inter_op_num_threads")))
    yield from ("-o", flag_text(of("optimization_level")))
    for name, letter in (("generate_input", "-I"), ("parallel_executor", "-P"), ("verbose", "-v")):
        if of(name):
            yield letter
    for name, letter in (("provider_options", "-i"), ("session_config", "-C")):
        if of(name):
            yield from (letter, flag_text(of(name)))
    for override in str(of("free_dimension_override")).split():
        yield from ("-f", flag_text(override))
