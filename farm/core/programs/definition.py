"""Definition of a generic harness: how a program is called, and how its output is parsed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Template

from farm.core.base.setting_values import SettingValue
from farm.core.programs.time_unit import TimeUnit
from farm.core.runs.measurement import Better

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
class MetricLocator:
    """The location of a further metric."""

    place: ValueLocator
    unit: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagDefinition:
    """A setting of the program."""

    default: SettingValue
    help: str = ""
    minimum: int | None = None
    #: A text that stands for any number of words, told apart as a shell would.
    split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendDefinition:
    """One way to compute, how it is asked for, and what shows that it did."""

    arguments: tuple[str, ...] = ()
    accelerator: str
    #: Matches the output only where the accelerator did the work.
    proof: str = ""
    #: Matches it only where something else did.
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
    #: The flag that says how many samples there must be.
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
