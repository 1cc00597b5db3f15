"""A number that others measured, as its file tells it, and the limits of a file of such numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from farm.core.errors import InvalidInput

#: Of one file.
MAX_IMPORT_BYTES = 4 * 1024 * 1024
MAX_RESULTS = 10_000
#: Of all results of one file.
MAX_SAMPLES = 200_000
#: Of a name, a version or another text.
MAX_TEXT_CHARS = 500
#: Of the settings of one result.
MAX_SETTINGS = 64

Told = str | int | float | bool
_TIME_UNITS = frozenset({"ns", "us", "ms", "s"})
#: Memory is often the difference to an earlier moment.
UNITS_OF_DIFFERENCES = frozenset({"bytes", "kB", "MB"})


class ImportFormat(StrEnum):
    """A format of files that others' results are in."""

    #: Records of the ExecuTorch benchmark database, version 3, and those of its Android app.
    EXECUTORCH = "executorch"
    LLAMA_BENCH = "llama-bench"
    MLPERF_MOBILE = "mlperf-mobile"
    AI_HUB = "ai-hub"
    LITERT_LEADERBOARD = "litert-leaderboard"
    #: What benchmark_model writes to --result_file_path.
    BENCHMARK_RESULT = "benchmark-result"
    XCTEST = "xctest"
    #: The output of a tool that has an adapter, or of `farm live time`.
    LOG = "log"
    #: A table that a person typed from what others published.
    PUBLISHED = "published"


class Statistic(StrEnum):
    """What a value is of several runs, as its file says it."""

    MEAN = "mean"
    MEDIAN = "median"
    P5 = "p5"
    P95 = "p95"
    #: One number, of which the file does not say more.
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalResult:
    """One number of a file, with what the file says of it; None is what it does not say.

    Nothing is converted: the value has the unit of its file, and the date is the file's text.
    """

    tool: str
    tool_version: str | None = None
    model: str | None = None
    device: str | None = None
    os: str | None = None
    backend: str | None = None
    #: The file's name of the quantity.
    metric: str
    value: float
    unit: str | None
    statistic: Statistic
    clock_covers: str | None = None
    sample_count: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    deviation: float | None = None
    #: In the unit of the value, in the file's order.
    samples: tuple[float, ...] = ()
    date: str | None = None
    settings: Mapping[str, Told] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFile:
    """All results of a file, and what was left out of it, and why."""

    format: ImportFormat
    results: tuple[ExternalResult, ...]
    notes: tuple[str, ...] = ()


def checked_file(file: ExternalFile) -> ExternalFile:
    """Return a file without the times of 0, which say that nothing was measured.

    Raises:
        InvalidInput: there is no result, there are too many, or one cannot be.
    """
    if len(file.results) > MAX_RESULTS:
        raise InvalidInput(
            f"{len(file.results)} results are more than the {MAX_RESULTS} of one file", hint="split the file"
        )
    if sum(len(result.samples) for result in file.results) > MAX_SAMPLES:
        raise InvalidInput(f"more than {MAX_SAMPLES} samples are in one file", hint="split the file")
    measured = []
    notes = list(file.notes)
    for place, result in enumerate(file.results, start=1):
        _check(result, f"result {place}, {result.metric}")
        if result.value == 0 and result.unit in _TIME_UNITS:
            notes.append(
                f"result {place} is left out: {result.metric} of 0 {result.unit} is no measured time"
            )
        else:
            measured.append(result)
    if not measured:
        because = f": {notes[0]}" if notes else ""
        raise InvalidInput(f"there is no result in it{because}", hint="docs/import.md lists the formats")
    return ExternalFile(format=file.format, results=tuple(measured), notes=tuple(notes))


def _check(result: ExternalResult, place: str) -> None:
    numbers = [result.value, result.minimum, result.maximum, result.deviation, *result.samples]
    for number in numbers:
        is_negative = number is not None and number < 0 and result.unit not in UNITS_OF_DIFFERENCES
        if number is not None and (is_negative or not math.isfinite(number)):
            raise InvalidInput(f"{place}: {number:g} is not a measured value", hint="correct or remove it")
    if result.minimum is not None and result.maximum is not None and result.minimum > result.maximum:
        raise InvalidInput(
            f"{place}: its least value {result.minimum:g} is above its greatest, {result.maximum:g}",
            hint="correct or remove it",
        )
    if len(result.settings) > MAX_SETTINGS:
        raise InvalidInput(f"{place}: more than {MAX_SETTINGS} settings", hint="remove some")
    texts = [result.tool_version, result.model, result.device, result.os, result.backend, result.date]
    told = [value for value in result.settings.values() if isinstance(value, str)]
    for text in (result.metric, result.unit, *texts, *told, *result.settings):
        if text is not None:
            check_text(text, place)


def check_text(text: str, place: str) -> None:
    """Refuse a text that is too long, or has characters that no terminal or database takes.

    Raises:
        InvalidInput: naming the place.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInput(f"{place}: a text of more than {MAX_TEXT_CHARS} characters", hint="shorten it")
    if not text.isprintable():
        raise InvalidInput(f"{place}: a text has control characters", hint="correct or remove it")
