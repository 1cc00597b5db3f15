"""Definition of a generic harness: calls of its program, places and units of its numbers, contradictions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from string import Template

from farm.core.base.safe_regex import cost_problem
from farm.core.base.setting_values import Flag
from farm.core.base.spec_errors import SpecProblem, name_hint
from farm.core.models.variant import BACKEND_AXIS, HARNESS_AXIS, VARIANT_AXES
from farm.core.runs.measurement import Better

#: 11 days: longer than any run, and far within 64 bits.
LONGEST_NS = 10**15
#: Of all regular expressions of a definition. Every report is searched for each.
MAX_PATTERNS_BYTES = 16 * 1024

_NS_BY_UNIT = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "min": 60e9}
_PER_SECOND_BY_UNIT = {"fps": 1.0, "Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
_PER_SECOND = "/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUnit:
    """A unit of time, or of work per second: `scale` in nanoseconds, or in pieces of work per second."""

    name: str
    scale: float
    is_rate: bool = False

    @property
    def means(self) -> str:
        """Explain a value of the unit where that is not obvious."""
        return f"time per unit of work, from {self.name}" if self.is_rate else "time"

    def in_ns(self, value: float) -> float | None:
        """Return a value as time; None where it gives none."""
        if value <= 0:
            return None
        ns = 1e9 / (value * self.scale) if self.is_rate else value * self.scale
        return ns if 0 < ns <= LONGEST_NS else None


def time_unit(text: str) -> TimeUnit:
    """Return the unit of that name: `ms`, `img/s`.

    Raises:
        ValueError: it is none of time; says which are.
    """
    if text in _NS_BY_UNIT:
        return TimeUnit(name=text, scale=_NS_BY_UNIT[text])
    if text in _PER_SECOND_BY_UNIT:
        return TimeUnit(name=text, scale=_PER_SECOND_BY_UNIT[text], is_rate=True)
    if text.endswith(_PER_SECOND) and text != _PER_SECOND:
        return TimeUnit(name=text, scale=1.0, is_rate=True)
    raise ValueError(f"`{text}` is no unit of time: ns, us, ms, s, min; or of work per time: img/s, fps, Hz")


#: Placeholders of `arguments` besides the flags.
MODEL_PLACEHOLDER, WORK_PLACEHOLDER, BACKEND_PLACEHOLDER = "model", "work", "backend_arguments"
RESERVED_PLACEHOLDERS = frozenset({MODEL_PLACEHOLDER, WORK_PLACEHOLDER, BACKEND_PLACEHOLDER})

ACCELERATORS = ("cpu", "gpu", "npu", "dsp")

#: Of /proc/uptime, by which the supervisor on the phone times a process.
WALL_STEP_NS = 10_000_000
WALL_TIME = "the whole process from its start to its end, by the phone's own clock in steps of 10 ms"


class OutputStream(StrEnum):
    """The stream that the program prints its numbers to."""

    STDOUT = "stdout"
    STDERR = "stderr"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLocator:
    """The location of numbers in the output; exactly one field is set."""

    #: A regular expression with one group.
    pattern: str = ""
    json: str = ""

    def __str__(self) -> str:
        return self.json or f"/{self.pattern}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLocator:
    """The location of times."""

    place: ValueLocator
    unit: TimeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationLocator:
    """The location of the standard deviation of the iterations behind a `value`."""

    place: ValueLocator
    #: None where it is printed in percent of the value.
    unit: TimeUnit | None

    def in_ns(self, deviation: float, *, mean_ns: float) -> float | None:
        """Return a printed deviation as time, beside a mean; None where it is none.

        A rate scatters by the same fraction of its mean as the time of one piece of work, to first order.
        """
        if deviation < 0:
            return None
        if self.unit is None:
            return mean_ns * deviation / 100
        if self.unit.is_rate:
            return mean_ns * (deviation * self.unit.scale) * (mean_ns / 1e9)
        return deviation * self.unit.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLocator:
    """The location of a further metric."""

    place: ValueLocator
    unit: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagDefinition(Flag):
    """A setting of a generic harness's program."""

    #: A text that stands for any number of words, split as a shell would.
    split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendDefinition:
    """One way to compute, how it is asked for, and what shows that it did."""

    arguments: tuple[str, ...] = ()
    accelerator: str
    #: Matches the output only where the accelerator did the work.
    proof: str = ""
    #: Matches it only where something else did, or where the accelerator did not do all that it was to.
    fallback: str = ""
    #: Its author vouches for it.
    declared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A generic harness. At most one of `samples` and `value` is set; with neither, the process is timed."""

    name: str
    arguments: tuple[str, ...] = ()
    needs_model: bool = False
    flags: Mapping[str, FlagDefinition] = field(default_factory=dict)
    backends: Mapping[str, BackendDefinition]
    #: Every match, or every element, is one iteration.
    samples: TimeLocator | None = None
    #: The tool's own summary.
    value: TimeLocator | None = None
    #: How the iterations behind `value` scatter: their deviation, or the shortest and the longest of them.
    deviation: DeviationLocator | None = None
    minimum: TimeLocator | None = None
    maximum: TimeLocator | None = None
    #: The flag that says how many samples there must be, or of how many iterations `value` is.
    iterations_flag: str | None = None
    metrics: Mapping[str, MetricLocator] = field(default_factory=dict)
    stream: OutputStream = OutputStream.STDOUT
    success_exit_codes: tuple[int, ...] = (0,)
    #: A line that one of these matches says why the phone cannot do it.
    unsupported: tuple[str, ...] = ()
    clock_covers: str = ""

    @property
    def is_wall_timed(self) -> bool:
        """Tell whether the time is that of the whole process."""
        return self.samples is None and self.value is None


def placeholders(word: str) -> Iterator[str]:
    """Yield the names of `${name}` in a word.

    Raises:
        ValueError: a dollar that starts no placeholder; a literal one is `$$`.
    """
    for match in Template.pattern.finditer(word):
        if match["invalid"] is not None:
            raise ValueError(f"`{word}` has a dollar that starts no ${{name}}; a literal one is $$")
        if name := match["named"] or match["braced"]:
            yield name


def uses_placeholder(word: str, name: str) -> bool:
    """Tell whether a word has the placeholder; a misspelled one does not count."""
    try:
        return name in placeholders(word)
    except ValueError:
        return False


ROOT = "definition"


def broken_rules(definition: Definition) -> Iterator[SpecProblem]:
    """Yield all problems, each with its place."""
    for problem in _broken_rules(definition):
        yield replace(problem, root=ROOT)


def _broken_rules(definition: Definition) -> Iterator[SpecProblem]:
    yield from _argument_problems(definition)
    yield from _model_problems(definition)
    for name, flag in definition.flags.items():
        yield from _flag_problems(name, flag, definition)
    for name, backend in definition.backends.items():
        yield from _backend_problems(name, backend)
    yield from _time_problems(definition)
    yield from _scatter_problems(definition)
    for path, place in _places(definition):
        yield from _place_problems(path, place)
    total_bytes = 0
    for path, pattern in _patterns(definition):
        if (problem := cost_problem(pattern)) is not None:
            yield SpecProblem(path=path, message=problem)
        total_bytes += len(pattern.encode())
    if total_bytes > MAX_PATTERNS_BYTES:
        message = f"its regular expressions have {total_bytes} bytes, at most {MAX_PATTERNS_BYTES}"
        yield SpecProblem(path=(), message=message, hint="read fewer numbers, or write shorter patterns")


def _words(definition: Definition) -> list[tuple[tuple[str | int, ...], str]]:
    """Return every word that may have placeholders, with its place."""
    own = [(("arguments",), word) for word in definition.arguments]
    of_backends = [
        (("backends", name, "arguments"), word)
        for name, backend in definition.backends.items()
        for word in backend.arguments
    ]
    return [*own, *of_backends]


def _argument_problems(definition: Definition) -> Iterator[SpecProblem]:
    for path, word in _words(definition):
        allowed = {*RESERVED_PLACEHOLDERS, *definition.flags} - (
            {BACKEND_PLACEHOLDER} if len(path) > 1 else set()
        )
        try:
            names = list(placeholders(word))
        except ValueError as error:
            yield SpecProblem(path=path, message=str(error))
            continue
        for name in names:
            if name not in allowed:
                message = f"nothing is called ${{{name}}}"
                yield SpecProblem(path=path, message=message, hint=name_hint(name, allowed))
            elif word != f"${{{name}}}" and _becomes_several_words(name, definition):
                message = f"${{{name}}} stands for any number of words: it cannot be a part of `{word}`"
                yield SpecProblem(path=path, message=message)
    has_arguments = any(backend.arguments for backend in definition.backends.values())
    if has_arguments and f"${{{BACKEND_PLACEHOLDER}}}" not in definition.arguments:
        message = "a backend has arguments, and none of these words is ${backend_arguments}"
        yield SpecProblem(path=("arguments",), message=message)


def _becomes_several_words(name: str, definition: Definition) -> bool:
    return name == BACKEND_PLACEHOLDER or (name in definition.flags and definition.flags[name].split)


def _model_problems(definition: Definition) -> Iterator[SpecProblem]:
    used = any(uses_placeholder(word, MODEL_PLACEHOLDER) for _, word in _words(definition))
    if used and not definition.needs_model:
        yield SpecProblem(path=("needs_model",), message="is false, and the arguments use ${model}")
    if definition.needs_model and not used:
        message = "is true, and no argument is ${model}: the program would not know its file"
        yield SpecProblem(path=("needs_model",), message=message)


def _flag_problems(name: str, flag: FlagDefinition, definition: Definition) -> Iterator[SpecProblem]:
    path = ("flags", name)
    if name in (HARNESS_AXIS, *VARIANT_AXES, BACKEND_AXIS, *RESERVED_PLACEHOLDERS):
        yield SpecProblem(path=path, message=f"`{name}` is a word of matrices or definitions already")
    elif not any(uses_placeholder(word, name) for _, word in _words(definition)):
        hint = f"write ${{{name}}} where the program takes it"
        yield SpecProblem(path=path, message="no argument uses it", hint=hint)
    if flag.minimum is not None and isinstance(flag.default, str | bool):
        yield SpecProblem(path=(*path, "minimum"), message="only numbers have one")
    elif flag.minimum is not None and float(flag.default) < flag.minimum:
        yield SpecProblem(path=(*path, "minimum"), message=f"the default, {flag.default}, is less")
    if flag.split and not isinstance(flag.default, str):
        yield SpecProblem(path=(*path, "split"), message="only a text can be split into words")


def _backend_problems(name: str, backend: BackendDefinition) -> Iterator[SpecProblem]:
    path = ("backends", name)
    if not backend.accelerator:
        message, hint = "says no accelerator", "add `accelerator: cpu`, gpu, npu or dsp"
        yield SpecProblem(path=path, message=message, hint=hint)
    has_proof = backend.proof or backend.fallback or backend.declared
    if backend.accelerator == "cpu" and has_proof:
        message = "what runs on the CPU anyway needs no proof, and falls back to nothing"
        yield SpecProblem(path=path, message=message)


def _time_problems(definition: Definition) -> Iterator[SpecProblem]:
    if definition.samples and definition.value:
        message = "is one number for a whole run, and `samples` is there too: keep one of them"
        yield SpecProblem(path=("value",), message=message)
    flag = definition.iterations_flag
    if flag is None:
        return
    if flag not in definition.flags or type(definition.flags[flag].default) is not int:
        message, hint = f"`{flag}` is no flag that takes a whole number", name_hint(flag, definition.flags)
        yield SpecProblem(path=("iterations_flag",), message=message, hint=hint)
    if definition.is_wall_timed:
        message = "says how many iterations `samples` or `value` are of, and there are none"
        yield SpecProblem(path=("iterations_flag",), message=message)


def _scatter_problems(definition: Definition) -> Iterator[SpecProblem]:
    """Yield contradictions of the keys that say how the iterations behind `value` scatter."""
    extremes = {"minimum": definition.minimum, "maximum": definition.maximum}
    named = [name for name, locator in extremes.items() if locator is not None]
    for name in (*(("deviation",) if definition.deviation else ()), *named):
        if definition.value is None:
            message = "says how the iterations behind a `value` scatter, and there is none"
            yield SpecProblem(path=(name,), message=message, hint="`samples` are judged by themselves")
    if len(named) == 1:
        other = next(name for name in extremes if name not in named)
        yield SpecProblem(path=(named[0],), message=f"says nothing without `{other}`")
    if named and definition.iterations_flag is None:
        message = "says nothing without the number of iterations: name its flag by `iterations_flag`"
        yield SpecProblem(path=(named[0],), message=message)
    unit = definition.deviation.unit if definition.deviation else None
    if unit is not None and unit.is_rate and definition.value and definition.value.unit != unit:
        message = f"is in {unit.name}, and `value` in {definition.value.unit.name}"
        yield SpecProblem(path=("deviation", "unit"), message=message, hint="the unit of `value`, or %")


def _places(definition: Definition) -> Iterator[tuple[tuple[str | int, ...], ValueLocator]]:
    """Yield the location of each number, with its place in the definition."""
    times = {
        "samples": definition.samples,
        "value": definition.value,
        "deviation": definition.deviation,
        "minimum": definition.minimum,
        "maximum": definition.maximum,
    }
    yield from (((name,), locator.place) for name, locator in times.items() if locator is not None)
    yield from ((("metrics", name), metric.place) for name, metric in definition.metrics.items())


def _patterns(definition: Definition) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every regular expression, with its place in the definition."""
    for path, place in _places(definition):
        yield (*path, "pattern"), place.pattern
    for name, backend in definition.backends.items():
        yield ("backends", name, "proof"), backend.proof
        yield ("backends", name, "fallback"), backend.fallback
    yield from ((("unsupported", number), text) for number, text in enumerate(definition.unsupported))


def _place_problems(path: tuple[str | int, ...], place: ValueLocator) -> Iterator[SpecProblem]:
    if bool(place.pattern) == bool(place.json):
        yield SpecProblem(path=path, message="needs either a `pattern` or a `json` path")
