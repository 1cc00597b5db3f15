"""ExecuTorch's `executor_runner` and its variants: command line and output."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from farm.core.base.setting_values import Flag, RenamedFlag
from farm.core.models.variant import Format
from farm.core.runs.derived.operator_times import operator_metrics
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.placement import Placement
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.output_lines import plain_line, without_colours
from farm.harness.base.placement_probe import placement_of_pass
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
    iterations_ms,
    load_time,
    missing_times_failure,
    other_iterations,
    time_reading,
)
from farm.harness.executorch.etdump import DELEGATE_CALL, ETDUMP, EtDump, delegate_name, etdump, with_etdump
from farm.harness.executorch.placement import executorch_placement
from farm.harness.failures.classification import unreadable_failure

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,2})?"
#: executor_runner: the time of all executions together.
_TOTAL = re.compile(rf"Model executed successfully ([0-9]{{1,9}}) time\(s\) in ({_NUMBER}) ms")
#: qnn_executor_runner, one line for each set of inputs.
_OF_SET = re.compile(rf"(?<!Total )\b([0-9]{{1,9}}) inferences? took ({_NUMBER}) ms, avg ({_NUMBER}) ms")
#: Samsung's older runner, which executes once.
_ONCE = re.compile(rf"End with elapsed time\(ms\): ({_NUMBER})$")
#: The number of sets; its average is per set, which may be many inferences.
_SETS = re.compile(r"Total ([0-9]{1,9}) inferences? took")
#: The time of a line of ExecuTorch's own logger, in microseconds since its start.
_STAMP = re.compile(r"[VDIWEF] ([0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}) executorch:")
#: Runners that print no time of loading say so when it is over: those until 2025, and chip makers'.
_METHOD_LOADED = re.compile(
    r"[VDIWEF] ([0-9]{2}):([0-9]{2}):([0-9]{2}\.[0-9]{6}) "
    r"executorch:[\w.]{1,100}:[0-9]{1,6}\] Method loaded\.$",
    re.MULTILINE,
)
#: Sums are printed with six decimals.
_ROUNDED = 0.001
#: With or without a time.
SUCCESS = "Model executed successfully"
FLAGS: Mapping[str, Flag] = {
    "num_executions": Flag(default=50, help="timed executions, all in one process", minimum=1),
    "cpu_threads": Flag(default=1, help="threads of the CPU; -1 leaves it to the program", minimum=-1),
    "iteration": Flag(default=0, help="qnn, neuropilot: timed executions; 0 takes num_executions", minimum=0),
    "warm_up": Flag(default=0, help="qnn, enn: executions before the clock counts", minimum=0),
    "htp_performance_mode": Flag(
        default=0, help="qnn: 0 leaves it; else as Qualcomm numbers them", minimum=0
    ),
    "profile": RenamedFlag(
        default=False,
        option="etdump_path",
        help="cpu, xnnpack, vulkan: trace the model in a pass of its own (--etdump_path): times by operator",
    ),
}
_QNN, _NEUROPILOT, _ENN = "qnn", "neuropilot", "enn"
#: Runners of chip makers; they refuse to start with an unknown flag.
_OWN_FLAGS: Mapping[str, Sequence[str]] = {
    _QNN: ("iteration", "warm_up", "htp_performance_mode"),
    _NEUROPILOT: ("iteration",),
    _ENN: ("num_executions", "warm_up"),
}
_FLAGS_OF_ALL = ("num_executions", "cpu_threads")
#: Executions of the pass with an ETDump; the first is left out.
_PROFILED = 4
#: It prints six decimals of a millisecond.
_STEP_NS = 1
#: Passed whatever their value is.
_ALWAYS = ("num_executions", "iteration", "cpu_threads")
_NO_TIME = "this runner is older than the one that times executions: it only reports success"


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """The time of several executions together."""

    count: int
    total_ms: float
    line: str
    #: Empty where the line has none.
    stamp: str = ""


def executions(text: str) -> list[Executions]:
    """Return each line with the time of executions; older runners report only success.

    Where every line goes to the log and to the output, each pair counts once.
    """
    lines: list[Executions] = []
    sets: int | None = None
    for raw in without_colours(text.replace("\0", "")).splitlines():
        line = plain_line(raw)
        if (match := _TOTAL.search(line) or _OF_SET.search(line)) is not None:
            stamp = _stamp(raw)
            lines.append(Executions(count=int(match[1]), total_ms=float(match[2]), line=line, stamp=stamp))
        elif (match := _ONCE.search(line)) is not None:
            lines.append(Executions(count=1, total_ms=float(match[1]), line=line, stamp=_stamp(raw)))
        elif (match := _SETS.search(line)) is not None:
            sets = int(match[1])
    runs = _without_duplicates(lines, sets)
    return runs[:-1] if sets is None and _is_sum(runs) else runs


def _stamp(line: str) -> str:
    match = _STAMP.search(line)
    return match[1] if match is not None else ""


def _without_duplicates(lines: Sequence[Executions], sets: int | None) -> list[Executions]:
    """Remove repetitions: lines in the log and in the output stand there twice, all of them or none."""
    stamped = [line for line in lines if line.stamp]
    unstamped = Counter(line for line in lines if not line.stamp)
    if unstamped == Counter(replace(line, stamp="") for line in stamped):
        return stamped
    times = Counter(lines)
    if len(lines) == sets or any(number % 2 for number in times.values()):
        return list(lines)
    return list(Counter({line: number // 2 for line, number in times.items()}).elements())


def _is_sum(lines: Sequence[Executions]) -> bool:
    """Return whether the last line is Qualcomm's sum over all sets: their number, and all of their times."""
    if len(lines) < 2 or lines[-1].count != len(lines) - 1:
        return False
    total_ms = sum(line.total_ms for line in lines[:-1])
    return abs(lines[-1].total_ms - total_ms) <= _ROUNDED * total_ms


class ExecutorRunner(ToolHarness):
    """Runs `.pte` files. The backend of a file was chosen when it was exported."""

    name = "executor_runner"
    parser_version = 7
    flags = FLAGS
    formats = (Format.EXECUTORCH,)
    flags_are_words = True
    backends = ("cpu", "xnnpack", "vulkan", _QNN, _NEUROPILOT, _ENN)
    # An operator's time is named after its kind and count.
    metrics = (LOAD_TIME, "op *")
    sustained_flags = SustainedFlags(iterations="num_executions", fixed={"iteration": 0})
    clock_covers = (
        "Method::execute() only, on inputs of ones; newer runners print each execution, older ones the mean"
        " of all; the first is among them: there is no warm-up but qnn's and enn's"
    )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line; the runners of Qualcomm, MediaTek and Samsung have flags of their own."""
        passes = []
        if request.backend not in _OWN_FLAGS and setting(request.settings, FLAGS, "profile"):
            few = replace(request, settings={**request.settings, "num_executions": _PROFILED})
            words = [*_words(few), f"--etdump_path=${{work}}/{ETDUMP}"]
            passes = [ToolPass(name=RESULT_FILES, words=words, files=(ETDUMP,))]
        return tool_plan(self.name, request, list(_words(request)), passes=passes)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return each execution, or where the runner prints none the mean over all sets of inputs."""
        text = combined_output(evidence)
        sets = executions(text)
        count = sum(executed.count for executed in sets)
        if count == 0:
            why = (
                _NO_TIME
                if SUCCESS in text
                else "no line says `Model executed successfully N time(s) in ... ms`"
            )
            return missing_times_failure(evidence, why)
        # One process prints a line for each set of inputs, or one line for all.
        if len(sets) > 1 and not all(_OF_SET.search(executed.line) for executed in sets):
            return unreadable_failure(evidence, f"{len(sets)} runs are in it, and one was requested")
        mean_ms = sum(executed.total_ms for executed in sets) / count
        iterations = iterations_ms(text)
        if iterations and (
            wrong := other_iterations(iterations, mean_ms, summed=count, tolerance_ms=_ROUNDED * mean_ms)
        ):
            return unreadable_failure(evidence, wrong)
        times = LoopTimes(
            samples_ns=tuple(round(value * 1e6) for value in iterations),
            mean_ns=None if iterations else mean_ms * 1e6,
            expected=_requested_executions(plan.settings, plan.backend),
            summed=None if iterations else count,
            step_ns=_STEP_NS,
        )
        dump = etdump(result_files(evidence).get(ETDUMP, b""))
        placement = placement_of_pass(executorch_placement, text, evidence)
        return time_reading(
            plan,
            evidence,
            times,
            placement=with_etdump(placement, dump),
            on_cpu=_on_cpu(plan),
            metrics=[*load_time(text, _logged_load_ms(text)), *_operator_metrics(dump, placement)],
        )


def _logged_load_ms(text: str) -> float | None:
    """Return when the method was loaded, by the clock of the log, which begins with the runtime."""
    match = _METHOD_LOADED.search(text)
    if match is None:
        return None
    return ((int(match[1]) * 60 + int(match[2])) * 60 + float(match[3])) * 1e3


def _words(request: RunRequest) -> Iterator[str]:
    yield "--model=${file_model}" if request.backend == _ENN else "--model_path=${file_model}"
    for name in _OWN_FLAGS.get(request.backend, _FLAGS_OF_ALL):
        value = setting(request.settings, FLAGS, name)
        if name in ("num_executions", "iteration"):
            value = _requested_executions(request.settings, request.backend)
        if name not in request.missing_flags and (name in _ALWAYS or value != FLAGS[name].default):
            yield f"--{name}={flag_text(value)}"


def _operator_metrics(dump: EtDump | None, placement: Placement | None) -> list[Metric]:
    """Return the times of operators, and of a delegate's calls under the name of the delegate."""
    called = {DELEGATE_CALL: delegate_name(placement)}
    return operator_metrics(
        replace(each, operator=called.get(each.operator, each.operator))
        for each in (dump.operators if dump is not None else ())
    )


def _requested_executions(settings: Mapping[str, object], backend: str) -> int:
    values = {name: value for name, value in settings.items() if isinstance(value, int | float | str)}
    if "iteration" in _OWN_FLAGS.get(backend, ()) and setting(values, FLAGS, "iteration"):
        return count_setting(values, FLAGS, "iteration")
    return count_setting(values, FLAGS, "num_executions")


def _on_cpu(plan: RunPlan) -> str:
    """Return the proof for backends of the CPU: a file names its backend."""
    if plan.backend in ("cpu", "xnnpack"):
        return f"cpu by construction: the file was exported for {plan.backend}"
    return ""
