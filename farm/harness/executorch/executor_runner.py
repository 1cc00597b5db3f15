"""ExecuTorch's `executor_runner` and its variants: command line and output."""

from collections.abc import Mapping, Sequence

from farm.core.models.variant import Format, Manifest
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.base.options import Flag
from farm.harness.base.placement_probe import placement_of_pass
from farm.harness.base.tool_adapter import (
    count_setting,
    find_unsupported_reason,
    flag_text,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import LoopTimes, combined_output, missing_times_failure, time_reading
from farm.harness.executorch.output import are_of_one_run, executions, iterations_ms, reports_execution
from farm.harness.executorch.placement import executorch_placement
from farm.harness.failures.classification import classify, unreadable_failure
from farm.harness.failures.runtime_patterns import RUNTIME_PATTERNS

FLAGS: Mapping[str, Flag] = {
    "num_executions": Flag(default=50, help="timed executions, all in one process", minimum=1),
    "cpu_threads": Flag(default=1, help="threads of the CPU; -1 leaves it to the program", minimum=-1),
    "iteration": Flag(default=0, help="qnn, neuropilot: timed executions; 0 takes num_executions", minimum=0),
    "warm_up": Flag(default=0, help="qnn, enn: executions before the clock counts", minimum=0),
    "htp_performance_mode": Flag(
        default=0, help="qnn: 0 leaves it; else as Qualcomm numbers them", minimum=0
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
#: Passed whatever their value is.
_ALWAYS = ("num_executions", "iteration", "cpu_threads")
#: Each time has six decimals of a millisecond.
_ROUNDED = 0.001
_NO_TIME = "this runner is older than the one that times executions: it only reports success"


class ExecutorRunner:
    """Runs `.pte` files. The backend of a file was chosen when it was exported."""

    name: str = "executor_runner"
    parser_version: int = 3
    flags: Mapping[str, Flag] = FLAGS
    needs_model: bool = True
    formats: Sequence[Format] = (Format.EXECUTORCH,)
    flags_are_words: bool = True
    backends: Sequence[str] = ("cpu", "xnnpack", "vulkan", _QNN, _NEUROPILOT, _ENN)
    clock_covers: str = (
        "Method::execute() only, on inputs of ones; newer runners print each execution, older ones the mean"
        " of all; the first is among them: there is no warm-up but qnn's and enn's"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why this harness cannot run the variant on the backend; None when it can."""
        return find_unsupported_reason(
            self.name, variant, backend, backends=self.backends, formats=self.formats
        )

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line; the runners of Qualcomm, MediaTek and Samsung have flags of their own."""
        names = _OWN_FLAGS.get(request.backend, _FLAGS_OF_ALL)
        words = ["--model=${file_model}" if request.backend == _ENN else "--model_path=${file_model}"]
        for name in names:
            value = setting(request.settings, FLAGS, name)
            if name in ("num_executions", "iteration"):
                value = _requested_executions(request.settings, request.backend)
            if name not in request.missing_flags and (name in _ALWAYS or value != FLAGS[name].default):
                words.append(f"--{name}={flag_text(value)}")
        return tool_plan(self.name, request, words)

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return each execution, or where the runner prints none the mean over all sets of inputs."""
        failure = classify(evidence, patterns=RUNTIME_PATTERNS)
        if failure is not None:
            return failure
        text = combined_output(evidence)
        sets = executions(text)
        count = sum(executed.count for executed in sets)
        if count == 0:
            why = (
                _NO_TIME
                if reports_execution(text)
                else "no line says `Model executed successfully N time(s) in ... ms`"
            )
            return missing_times_failure(evidence, why)
        if not are_of_one_run(sets):
            return unreadable_failure(evidence, f"{len(sets)} runs are in it, and one was requested")
        mean_ms = sum(executed.total_ms for executed in sets) / count
        iterations = iterations_ms(text)
        if iterations and (
            len(iterations) != count or abs(sum(iterations) / count - mean_ms) > _ROUNDED * mean_ms
        ):
            iterations_text = f"{len(iterations)} executions of {sum(iterations) / len(iterations):.6g} ms"
            return unreadable_failure(
                evidence,
                f"{iterations_text} in the mean are not the {count} of {mean_ms:.6g} ms it ends with",
            )
        times = LoopTimes(
            samples_ns=tuple(round(value * 1e6) for value in iterations),
            mean_ns=None if iterations else mean_ms * 1e6,
            expected=_requested_executions(plan.settings, plan.backend),
            summed=None if iterations else count,
        )
        return time_reading(
            plan,
            evidence,
            times,
            placement=placement_of_pass(executorch_placement, text, evidence),
            on_cpu=_on_cpu(plan),
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
