"""Output of MNN's `benchmark.out`: its backend, one line for each model, and lines of its runtime."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from farm.harness.base.output_lines import plain_lines

_TIME = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?ms"
_COLUMNS = rf"max =\s*{_TIME}\s+min =\s*{_TIME}\s+avg =\s*{_TIME}"
_MODEL = re.compile(rf"\[ - \] (\S.{{0,300}}?)\s+{_COLUMNS}")
#: `**CPU** thread=4** precision=2`, and without the stars since 2023.
_FORWARD = re.compile(r"Forward type:\s*\**([\w/]{1,30})\**(.{0,200})$")
_OPTION = re.compile(r"(\w{1,40})=([0-9.]{1,12})")
_LOOP = re.compile(r"Benchmarking\.\.\. loop = ([0-9]{1,9})(?:, warmup = ([0-9]{1,9}))?")
_INSTEAD = re.compile(
    r"Can't Find type ?= ?\d{1,3} backend, use \d{1,3} instead|[Cc]reate Runtime [Ff]ailed"
    r"|Can't create Runtime|OpenCL init error"
)
#: After these it prints a time of work that was not done; without a platform it uses the CPU instead.
_LOST = re.compile(
    r"Build program failed, err|\bERROR CODE : -(?!1001\b)\d{1,5}\b(?!, info:(?:getPlatform|clEvent)\b)"
)
#: After the error of a work group size that was only tried; another one is used.
_TRIED = re.compile(r"lws (?:tune|null) res ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTime:
    """One model's times, in milliseconds with three decimals. The columns are max, min, avg."""

    name: str
    max_ms: float
    min_ms: float
    mean_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MnnOutput:
    """The output of a run."""

    models: tuple[ModelTime, ...]
    #: `CPU`, `OpenCL`, `Vulkan`; `N/A` for a backend without a name. The request, not the result.
    forward: str | None
    #: thread, precision, sparsity, ...: whatever the version prints.
    options: Mapping[str, float]
    loop: int | None
    warmup: int | None
    #: The line which reports that another backend was used than requested.
    instead: str | None
    #: The line which reports that the GPU did not do a part of the work.
    lost: str | None


def mnn_output(text: str) -> MnnOutput:
    """Parse the output of any version."""
    models: list[ModelTime] = []
    forward: re.Match[str] | None = None
    loop: re.Match[str] | None = None
    instead: str | None = None
    lost: str | None = None
    lines = plain_lines(text)
    for line, behind in zip_longest(lines, lines[1:], fillvalue=""):
        if (match := _MODEL.search(line)) is not None:
            high, low, mean = map(float, match.groups()[1:])
            models.append(ModelTime(name=match[1], max_ms=high, min_ms=low, mean_ms=mean))
        forward = _FORWARD.search(line) or forward
        loop = _LOOP.search(line) or loop
        instead = line if _INSTEAD.search(line) else instead
        if lost is None and _LOST.search(line) and not _TRIED.search(behind):
            lost = line
    return MnnOutput(
        models=tuple(models),
        forward=forward[1] if forward else None,
        options={} if forward is None else _options(forward[2]),
        loop=int(loop[1]) if loop else None,
        warmup=int(loop[2]) if loop and loop[2] else None,
        instead=instead,
        lost=lost,
    )


def _options(text: str) -> dict[str, float]:
    return {
        name: float(value) for name, value in _OPTION.findall(text) if re.fullmatch(r"\d+(?:\.\d*)?", value)
    }
