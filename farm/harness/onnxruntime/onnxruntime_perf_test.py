"""ONNX Runtime's `onnxruntime_perf_test`: command line and output."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.declared_inputs import InputProblem, input_text
from farm.core.models.variant import OPEN, Format, Manifest
from farm.core.runs.derived.operator_times import operator_metrics
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import InputSettings
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.placement_probe import placement_of_pass, placement_pass
from farm.harness.base.printed_numbers import stream_step, whole_ns
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
    LoopTimes,
    combined_output,
    lower_is_better,
    missing_times_failure,
    time_reading,
)
from farm.harness.failures.classification import unreadable_failure
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.onnxruntime.profile import FILES, PROFILE, OrtProfile, ort_profile, with_profile

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
#: By a line's label in lower case: the field, and the nanoseconds of its unit; 1 for plain numbers.
_FIELDS: Mapping[str, tuple[str, float]] = {
    "average inference time cost": ("mean_ns", 1e6),
    "average inference time cost total": ("mean_ns", 1e6),
    "average time cost": ("mean_ns", 1e6),
    "first inference time cost": ("first_ns", 1e6),
    "session creation time cost": ("creation_ns", 1e9),
    "total inference requests": ("requests", 1.0),
    "total iterations": ("requests", 1.0),
    "runs": ("runs", 1.0),
    "avg cpu usage": ("cpu_pct", 1.0),
    "peak working set size": ("peak_bytes", 1.0),
    "min latency": ("min_ns", 1e9),
    "max latency": ("max_ns", 1e9),
    "p50 latency": ("p50_ns", 1e9),
    "p90 latency": ("p90_ns", 1e9),
    "p95 latency": ("p95_ns", 1e9),
    "p99 latency": ("p99_ns", 1e9),
    "p999 latency": ("p999_ns", 1e9),
}
_TOTALS = ("total inference time cost", "total time cost")
_LINE = re.compile(rf"([A-Z][\w ]{{2,40}}?)(?::| is)\s{{0,4}}({_NUMBER})\s{{0,4}}(s|sec|ms|%|bytes)?$")
#: Unique labels, wherever they begin: a line may have an unknown prefix.
_INSIDE = re.compile(
    r"\b((?:Average|Total|First) inference (?:time cost(?: total)?|requests)|Session creation time cost)"
    rf":\s{{0,4}}({_NUMBER})\s{{0,4}}(s|ms)?$"
)
_SAMPLE = re.compile(
    rf"[^,\n]{{0,300}}(?:,{_NUMBER})?,({_NUMBER}),([0-9]{{1,18}}),([0-9]{{1,6}}),([0-9]{{1,9}})$"
)
_UNIT_NS: Mapping[str, float] = {"s": 1e9, "sec": 1e9, "ms": 1e6}
FLAGS: Mapping[str, Flag] = {
    "repeated_times": Flag(default=100, help="timed inferences (-r)", minimum=1),
    "seconds": Flag(
        default=0, help="work for so long instead (-m duration -t); 0: `repeated_times` counts", minimum=0
    ),
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
    "profile": Flag(
        default=False,
        help="profile the model in a pass of its own (-p): times by operator, and the provider of each node",
    ),
    "verbose": Flag(default=False, help="log what is done (-v), which slows nothing but loading"),
}
#: The file of each iteration's time: the run's own output, which is stored.
_RESULT_FILE = "/proc/self/fd/1"
#: Its end is at the first colon, and the farm separates several by blanks; `?` stands for no name.
_SYMBOL = re.compile(r"(?!\?$)[^\s:]+")
#: Timed inferences of the pass with a profile. Each node writes half a kilobyte in each.
_PROFILED = 3
_CPU = "cpu"
#: Rounding of six digits, and the loop around the clock.
_MEANS_MAY_DIFFER = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtOutput:
    """The values of one run, by name; times in nanoseconds."""

    values: Mapping[str, float]
    #: Every iteration's time, where the output has it.
    samples_ns: tuple[int, ...]
    #: Its samples are numbered from 0 without a gap, or from where the head of the output was cut off.
    samples_are_whole: bool
    #: More than one run ended in the output.
    contradicts: bool

    @property
    def mean_ns(self) -> float | None:
        """Return the tool's own average."""
        return self.values.get("mean_ns")

    @property
    def requests(self) -> int | None:
        """Return the number of inferences in the average."""
        count = self.values.get("requests", self.values.get("runs"))
        return None if count is None else round(count)


def ort_output(text: str) -> OrtOutput:
    """Parse an output of any version; without an average line, compute it from total and count."""
    values: dict[str, float] = {}
    samples: dict[int, int] = {}
    total_ns: float | None = None
    #: Values that a run prints once.
    values_by_field: dict[str, set[float]] = {"mean_ns": set(), "creation_ns": set()}
    for line in plain_lines(text):
        if (sample := _SAMPLE.match(line)) is not None:
            samples[int(sample[4])] = round(float(sample[1]) * 1e9)
        elif (match := _INSIDE.search(line) or _LINE.match(line)) is not None:
            label, value, unit = match[1].lower(), float(match[2]), match[3] or ""
            if label in _TOTALS:
                total_ns = value * 1e9 if unit else total_ns
            elif (field := _FIELDS.get(label)) is not None:
                # The unit of old versions is the field's own; newer ones print it.
                values[field[0]] = value * (_UNIT_NS.get(unit, field[1]) if field[1] > 1 else 1.0)
                values_by_field.get(field[0], set()).add(values[field[0]])
    count = values.get("requests")
    if "mean_ns" not in values and total_ns is not None and count:
        values["mean_ns"] = total_ns / count
    numbers = sorted(samples)
    has_lost_head = _has_lost_its_head(numbers, count)
    if has_lost_head and "mean_ns" in values:
        # The tool's own average is of all iterations.
        numbers = []
    return OrtOutput(
        values=values,
        samples_ns=tuple(samples[number] for number in numbers),
        samples_are_whole=has_lost_head or numbers == list(range(len(numbers))),
        contradicts=any(len(different) > 1 for different in values_by_field.values()),
    )


def _has_lost_its_head(numbers: Sequence[int], count: float | None) -> bool:
    """Return whether only the first samples are missing."""
    if not numbers or numbers[0] == 0 or (count is not None and numbers[-1] + 1 != count):
        return False
    return numbers[-1] - numbers[0] + 1 == len(numbers)


#: The value of a metric by its name; those of the second kind are for outputs without samples.
_OF_TIME = {"first": "first_ns", LOAD_TIME: "creation_ns"}
_SUMMED = {name: f"{name}_ns" for name in ("min", "max", "p50", "p90", "p95", "p99")}


class OnnxruntimePerfTest(ToolHarness):
    """Runs `.onnx` and `.ort` files; its result file has one line for each iteration."""

    name = "onnxruntime_perf_test"
    parser_version = 8
    flags = FLAGS
    formats = (Format.ONNX, Format.ORT)
    backends = (_CPU, "xnnpack", "nnapi", "qnn", "acl", "webgpu")
    # An operator's time is named after its kind and count.
    metrics = (*_OF_TIME, *_SUMMED, "memory_peak", "cpu", "op *")
    sustained_flags = SustainedFlags(seconds=("seconds",))
    clock_covers = (
        "Session::Run() only, on inputs made before the loop; one inference comes before the first timed one"
    )

    def input_settings(self, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
        """Return the sizes of free dimensions by their names, in the order of the file.

        The tool takes 1 for those that it is not told, and inputs are generated by default.
        """
        flag = "free_dimension_override"
        if flag in given:
            return {}
        sizes: dict[str, int] = {}
        for spec in variant.inputs:
            for symbol, size in zip(spec.free, spec.shape, strict=False):
                if not symbol or size == OPEN:
                    continue
                if _SYMBOL.fullmatch(symbol):
                    sizes[symbol] = size
                elif size != 1:
                    return InputProblem(
                        reason=f"{self.name} sets a free dimension by its name, and one of"
                        f" {input_text(spec)} has none, or one that cannot be written as name:value",
                        hint="export the model with names of dynamic axes, or with fixed sizes",
                    )
        return {flag: " ".join(f"{name}:{size}" for name, size in sizes.items())} if sizes else {}

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line of the Android binary. Without `-v` a provider reports no nodes."""
        words = list(_words(request.settings, request.backend))
        passes = []
        if request.backend != _CPU and not setting(request.settings, FLAGS, "verbose"):
            few = {**request.settings, "repeated_times": 1, "seconds": 0, "verbose": True}
            words_of_pass = [*_words(few, request.backend), "${file_model}", "${work}/placement.csv"]
            passes = [placement_pass(request.backend, words_of_pass)]
        if setting(request.settings, FLAGS, "profile"):
            few = {**request.settings, "repeated_times": _PROFILED, "seconds": 0, "verbose": False}
            options = [*_words(few, request.backend), "-p", f"${{work}}/{PROFILE}"]
            words_of_pass = [*options, "${file_model}", "${work}/profile.csv"]
            passes.append(ToolPass(name=RESULT_FILES, words=words_of_pass, files=(FILES,)))
        return tool_plan(self.name, request, [*words, "${file_model}", _RESULT_FILE], passes=passes)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return one sample for each iteration, or else the tool's average."""
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
        profile = _profile(evidence)
        placement = with_profile(placement_of_pass(ort_placement, text, evidence), profile, text)
        on_cpu = "cpu by construction: no other provider is in its command" if plan.backend == _CPU else ""
        return time_reading(
            plan,
            evidence,
            _times(plan, output),
            placement=placement,
            on_cpu=on_cpu,
            metrics=[*_metrics(output), *operator_metrics(profile.operators if profile else ())],
        )


def _profile(evidence: Evidence) -> OrtProfile | None:
    """Return the profile of the pass that has one."""
    files = result_files(evidence).items()
    profiles = (ort_profile(data) for name, data in files if name.startswith(PROFILE))
    return next((profile for profile in profiles if profile is not None), None)


def _times(plan: RunPlan, output: OrtOutput) -> LoopTimes:
    is_timed = setting(plan.settings, FLAGS, "seconds") != 0
    expected = 1 if is_timed else count_setting(plan.settings, FLAGS, "repeated_times")
    if output.samples_ns:
        # The longest one has the fewest decimals.
        step_ns = whole_ns(stream_step(max(output.samples_ns)))
        return LoopTimes(samples_ns=output.samples_ns, expected=expected, step_ns=step_ns)
    low_ns, high_ns = (output.values.get(name) for name in ("min_ns", "max_ns"))
    extremes_ns = None if low_ns is None or high_ns is None else (low_ns, high_ns)
    return LoopTimes(
        mean_ns=output.mean_ns,
        expected=expected,
        summed=output.requests,
        step_ns=whole_ns(stream_step(output.mean_ns)) if output.mean_ns else 0,
        extremes_ns=extremes_ns,
        median_ns=output.values.get("p50_ns"),
    )


def _disagreement(output: OrtOutput) -> str | None:
    """Return how the samples contradict the tool's own values; None when they agree."""
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
    field_by_name = {**_OF_TIME, **({} if output.samples_ns else _SUMMED)}
    times = {name: output.values.get(field) for name, field in field_by_name.items()}
    yield from lower_is_better({name: None if ns is None else ns / 1e6 for name, ns in times.items()}, "ms")
    peak = output.values.get("peak_bytes")
    yield from lower_is_better({"memory_peak": None if peak is None else peak / 1e6}, "MB")
    yield from lower_is_better({"cpu": output.values.get("cpu_pct")}, "%")


def _words(settings: Mapping[str, SettingValue], backend: str) -> Iterator[str]:
    def of(name: str) -> SettingValue:
        return setting(settings, FLAGS, name)

    if of("seconds"):
        yield from ("-e", backend, "-m", "duration", "-t", flag_text(of("seconds")))
    else:
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
