"""The adapter of every program that has a definition of its own: its command line, and its readings."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Template
from typing import TypeVar

from farm.core.base.safe_regex import first_line
from farm.core.base.setting_values import SettingValue
from farm.core.errors import Blame
from farm.core.models.variant import Format
from farm.core.programs.bundle import command_words, plan_files
from farm.core.programs.definition import (
    BACKEND_PLACEHOLDER,
    LONGEST_NS,
    MODEL_PLACEHOLDER,
    WALL_STEP_NS,
    WALL_TIME,
    WORK_PLACEHOLDER,
    BackendDefinition,
    Definition,
    DeviationLocator,
    OutputStream,
    TimeLocator,
    ValueLocator,
)
from farm.core.runs.derived.generation import TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Metric, Outcome, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.accelerators import failed_execution
from farm.harness.base.adapter import ClockScope, RunRequest, located_words, model_files
from farm.harness.base.log_lines import log_lines
from farm.harness.base.options import GenericOptions
from farm.harness.base.printed_numbers import whole_ns
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_result import LoopTimes, deviation_of_mean
from farm.harness.failures.classification import adb_failure, classify, unreadable_failure
from farm.harness.failures.patterns import DEVICE_PATTERNS
from farm.harness.generic.extraction import InvalidNumber, ProgramOutput, dropped_bytes, program_output

_ValueT = TypeVar("_ValueT")

_SOMETHING_ELSE = "something else"
_COMPARE = "compare what it printed, `farm attempt show ID`, with the places in its definition"
_NOT_SAID = "what the program itself times; its definition does not say what that covers"


def clock_covers(definition: Definition) -> str:
    """Return what the time of a reading covers."""
    if definition.is_wall_timed:
        return "; ".join(filter(None, [WALL_TIME, definition.clock_covers]))
    place = definition.samples or definition.value
    rate = f"; {place.unit.means}" if place and place.unit.is_rate else ""
    return f"{definition.clock_covers or _NOT_SAID}{rate}"


def read_output(definition: Definition, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
    """Return the numbers at the definition's places, or the duration of the whole process."""
    # Messages name the program, and not the shell or `taskset` that starts it.
    evidence = replace(evidence, argv=(definition.name,))
    failure = _failure(definition, evidence)
    if failure is not None:
        return failure
    output = program_output(evidence, definition.stream)
    try:
        times = _times(definition, plan, evidence, output)
        metrics = tuple(_metrics(definition, output))
    except InvalidNumber as error:
        return unreadable_failure(evidence, str(error), hint=_COMPARE)
    if isinstance(times, RunFailure):
        return times
    actual_backend, accelerator, proof = _placement(definition, plan.backend, evidence)
    return Reading(
        samples_ns=times.samples_ns,
        mean_ns=times.mean_ns,
        expected_samples=times.expected,
        actual_backend=actual_backend,
        accelerator=accelerator,
        proof=proof,
        metrics=metrics,
        clock_step_ns=times.step_ns,
        deviation_ns=deviation_of_mean(times),
        extremes_ns=times.extremes_ns,
    )


def _failure(definition: Definition, evidence: Evidence) -> RunFailure | None:
    has_ended = evidence.error is None and evidence.exit is not None and not evidence.exit.timed_out
    line = _first_of(definition.unsupported, evidence) if has_ended else None
    if line is not None and (failure := adb_failure(evidence)) is not None:
        return failure
    if line is None:
        return classify(evidence, success=definition.success_exit_codes, patterns=DEVICE_PATTERNS)
    return RunFailure(
        code="run.unsupported",
        outcome=Outcome.UNSUPPORTED,
        blame=Blame.VARIANT,
        message=f"{definition.name} reports that it cannot do this here",
        hint="its definition lists this line as `unsupported`",
        line=line,
    )


def _times(
    definition: Definition, plan: RunPlan, evidence: Evidence, output: ProgramOutput
) -> LoopTimes | RunFailure:
    if definition.samples is not None:
        return _of_samples(definition, definition.samples, plan, evidence, output)
    if definition.value is not None:
        return _of_value(definition, definition.value, plan, output)
    return _of_wall_time(definition, evidence)


def _of_samples(
    definition: Definition, where: TimeLocator, plan: RunPlan, evidence: Evidence, output: ProgramOutput
) -> LoopTimes:
    times = _times_ns(output, where)
    samples, step_ns = tuple(round(time.ns) for time in times), _step_ns(times)
    if not samples:
        raise InvalidNumber(f"there is no number at {where.place}")
    if min(samples) < 1:
        raise InvalidNumber(
            f"a number at {where.place} is less than a nanosecond: is its unit {where.unit.name}?"
        )
    expected = _iterations(definition, plan)
    if expected is None:
        if dropped_bytes(evidence, definition.stream):
            raise InvalidNumber("the number of missing samples is unknown: `iterations_flag` would give it")
        return LoopTimes(samples_ns=samples, expected=len(samples), step_ns=step_ns)
    if len(samples) > expected:
        counted = f"{len(samples)} numbers are at {where.place}"
        raise InvalidNumber(f"{counted}, `{definition.iterations_flag}` says {expected}")
    return LoopTimes(samples_ns=samples, expected=expected, step_ns=step_ns)


def _iterations(definition: Definition, plan: RunPlan) -> int | None:
    """Return how many iterations were asked for; None where no flag says it."""
    flag = definition.iterations_flag
    return None if flag is None else int(plan.settings.get(flag, definition.flags[flag].default))


def _of_value(definition: Definition, where: TimeLocator, plan: RunPlan, output: ProgramOutput) -> LoopTimes:
    """Return a tool's own mean, with the scatter of its iterations where there is more than one."""
    times = _times_ns(output, where)
    mean_ns, step_ns = _only(times, where.place).ns, _step_ns(times)
    count = _iterations(definition, plan)
    if count == 1:
        return LoopTimes(mean_ns=mean_ns, expected=1, step_ns=step_ns)
    return LoopTimes(
        mean_ns=mean_ns,
        expected=count or 1,
        step_ns=step_ns,
        deviation_ns=_deviation_ns(definition.deviation, output, mean_ns),
        extremes_ns=_extremes_ns(definition, output),
    )


def _deviation_ns(where: DeviationLocator | None, output: ProgramOutput, mean_ns: float) -> float | None:
    if where is None:
        return None
    printed = _only(output.numbers(where.place), where.place)
    deviation_ns = where.in_ns(printed, mean_ns=mean_ns)
    if deviation_ns is None or deviation_ns > LONGEST_NS:
        raise InvalidNumber(f"{printed:g} at {where.place} is not a possible deviation of {mean_ns:g} ns")
    return deviation_ns


def _extremes_ns(definition: Definition, output: ProgramOutput) -> tuple[float, float] | None:
    """Return the shortest and the longest time; of rates, the least one is the longest time."""
    if definition.minimum is None or definition.maximum is None:
        return None
    ends = (definition.minimum, definition.maximum)
    low_ns, high_ns = sorted(_only(_times_ns(output, end), end.place).ns for end in ends)
    return low_ns, high_ns


def _only(numbers: Sequence[_ValueT], place: ValueLocator) -> _ValueT:
    """Return the one number of a place.

    Raises:
        InvalidNumber: there is none, or more than one.
    """
    if len(numbers) != 1:
        raise InvalidNumber(f"{len(numbers)} numbers are at {place}, one was expected")
    return numbers[0]


def _of_wall_time(definition: Definition, evidence: Evidence) -> LoopTimes | RunFailure:
    # A script that did not reach a device through adb may go on, and the time is that of nothing.
    if (failure := adb_failure(evidence)) is not None:
        return failure
    took_s = evidence.exit.duration_s if evidence.exit else 0.0
    if took_s > 0:
        return LoopTimes(mean_ns=took_s * 1e9, expected=1, step_ns=WALL_STEP_NS)
    return RunFailure(
        code="run.too_short",
        outcome=Outcome.FAILED,
        blame=Blame.VARIANT,
        message=f"{definition.name} ended within 10 ms, the step of the clock that times whole processes",
        hint="let it do more work, or print its own time for the definition to read",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    ns: float
    #: What its last printed digit is worth.
    step_ns: float


def _step_ns(times: Sequence[_Time]) -> int:
    """Return the step of times that are printed alike: the finest, as zeros at an end may be left out."""
    return whole_ns(min((time.step_ns for time in times), default=0.0))


def _times_ns(output: ProgramOutput, where: TimeLocator) -> list[_Time]:
    """Return every time at a place.

    Raises:
        InvalidNumber: a number there is no time.
    """
    times = []
    for value in output.numbers(where.place):
        ns = where.unit.in_ns(value)
        if ns is None:
            raise InvalidNumber(
                f"{value:g} {where.unit.name} at {where.place} is not a possible time of a run"
            )
        # Of rates, too, to first order.
        times.append(_Time(ns=ns, step_ns=ns * value.step / value))
    return times


def _metrics(definition: Definition, output: ProgramOutput) -> Iterator[Metric]:
    """Return the last number at each metric's place; a metric that was not printed is left out."""
    for name, metric in definition.metrics.items():
        if numbers := output.numbers(metric.place):
            # A plain number: it travels between processes.
            yield Metric(name=name, value=float(numbers[-1]), unit=metric.unit, better=metric.better)


def _placement(definition: Definition, name: str, evidence: Evidence) -> tuple[str, str, str]:
    """Return the placement that the definition's patterns show."""
    backend = definition.backends[name]
    if backend.accelerator == "cpu":
        return name, "cpu", f"cpu by the definition of {definition.name}, which names nothing else for {name}"
    if backend.fallback and (line := _first_of((backend.fallback,), evidence)) is not None:
        return _SOMETHING_ELSE, UNKNOWN_ACCELERATOR, line
    has_proof, proof = _proof(backend, evidence)
    if not has_proof:
        return name, UNKNOWN_ACCELERATOR, proof
    # What was planned for an accelerator may have failed afterwards; something else did the work then.
    failed = failed_execution(log_lines(program_output(evidence, OutputStream.BOTH).text))
    if failed is not None:
        shown = "; ".join(dict.fromkeys((proof, failed)))
        return name, UNKNOWN_ACCELERATOR, f"{shown}: {backend.accelerator} failed"
    return name, backend.accelerator, proof


def _proof(backend: BackendDefinition, evidence: Evidence) -> tuple[bool, str]:
    """Return whether an accelerator is shown to have been used, and the line or the reason."""
    if backend.declared:
        return True, "declared by its definition, not proven by its output"
    if not backend.proof:
        return False, "its definition names no proof"
    line = _first_of((backend.proof,), evidence)
    return line is not None, line or f"nothing in its output matches /{backend.proof}/"


def _first_of(patterns: Sequence[str], evidence: Evidence) -> str | None:
    """Return the first line of both outputs that one of the patterns matches."""
    text = program_output(evidence, OutputStream.BOTH).text if patterns else ""
    return next((line for pattern in patterns if (line := first_line(pattern, text)) is not None), None)


def argument_words(
    definition: Definition, *, backend: str, settings: Mapping[str, SettingValue]
) -> Iterator[str]:
    """Return the arguments of the program, in the placeholders of run plans.

    A flag that is missing in the settings has its default: they may be of another version's definition.
    """
    values = {name: settings.get(name, flag.default) for name, flag in definition.flags.items()}
    for word in definition.arguments:
        is_backends = word == f"${{{BACKEND_PLACEHOLDER}}}"
        for argument in definition.backends[backend].arguments if is_backends else (word,):
            yield from _fill(argument, definition, values)


def _fill(word: str, definition: Definition, values: Mapping[str, SettingValue]) -> list[str]:
    for name, flag in definition.flags.items():
        if flag.split and word == f"${{{name}}}":
            return [_literal(part) for part in _split(str(values[name]))]
    spelled = {
        name: _literal(str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in values.items()
    }
    spelled |= {MODEL_PLACEHOLDER: "${file_model}", WORK_PLACEHOLDER: "${work}"}
    return [
        Template.pattern.sub(lambda match: "$$" if match[0] == "$$" else spelled[match[0].strip("${}")], word)
    ]


def _split(text: str) -> list[str]:
    """Split words as a shell does; at blanks only where a quotation has no end."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _literal(text: str) -> str:
    """Escape the placeholders of a text for a run plan."""
    return text.replace("$", "$$")


class GenericHarness(GenericOptions):
    """Calls a program as its definition describes, and reads its output at the places of the definition."""

    parser_version: int = 7

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self.definition = definition
        self.flags_are_words: bool = False
        self.formats: Sequence[Format] = ()
        flag = definition.iterations_flag
        self.sustained_flags: SustainedFlags | None = SustainedFlags(iterations=flag) if flag else None
        self.clock_covers: str = clock_covers(definition)
        self.clock_scope = ClockScope.PROCESS if definition.is_wall_timed else ClockScope.UNSTATED

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts | None:
        """Return None: the farm does not know which flags of a program are about tokens."""
        return None

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the plan with the command of the definition."""
        files = plan_files(request.bundle)
        model = () if request.variant is None else model_files(request.variant)
        words = list(argument_words(self.definition, backend=request.backend, settings=request.settings))
        return RunPlan(
            harness=self.name,
            backend=request.backend,
            settings=request.settings,
            files=(*files, *model),
            argv=command_words(request.bundle, located_words(words, model) if model else words),
            env=request.bundle.env,
            timeout_s=request.timeout_s,
            gates=request.gates,
        )

    def parse(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the numbers at the definition's places, or the duration of the whole process."""
        return read_output(self.definition, plan, evidence)
