"""Output of ncnn's `benchncnn`: its settings, one line for each network, GPUs where it has any."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.harness.base.output_lines import plain_lines

#: Always with two decimals: fewer mean that it was cut off.
_TIME = r"[0-9]{1,12}\.[0-9]{2}"
_NETWORK = re.compile(rf"(\S.{{0,300}}?)\s+min\s*=\s*({_TIME})\s+max\s*=\s*({_TIME})\s+avg\s*=\s*({_TIME})$")
_SETTING = re.compile(r"(loop_count|num_threads|powersave|gpu_device|cooling_down)\s*=\s*(-?[0-9]{1,9})$")
#: `[0 Mali-G72]  queueC=0[2]`; since 2022 number and name, then more of its capabilities.
_DEVICE = re.compile(r"\[([0-9]{1,3}) ([^\]\n]{1,100})\]")
#: After these it prints a row of times like any other. Queries (vkGet..) may be refused.
GOES_ON = re.compile(
    r"not exists or registered|network graph not ready|fopen \S{1,300} failed"
    r"|find_blob_index_by_name \S{1,100} failed|layer load_(?:param|model) .{1,200} failed"
    r"|vk(?!Get)[A-Z]\w{2,60} failed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTime:
    """One network's times, in milliseconds with two decimals."""

    name: str
    min_ms: float
    max_ms: float
    mean_ms: float
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NcnnOutput:
    """The output of a run."""

    networks: tuple[NetworkTime, ...]
    #: loop_count, num_threads, powersave, gpu_device (-1: none), cooling_down.
    settings: Mapping[str, int]
    #: By number, with the line that names it first.
    device_by_number: Mapping[int, str]
    line_by_number: Mapping[int, str]


def ncnn_output(text: str) -> NcnnOutput:
    """Parse the output of any version."""
    networks: list[NetworkTime] = []
    settings: dict[str, int] = {}
    names: dict[int, str] = {}
    lines: dict[int, str] = {}
    for line in plain_lines(text):
        if (match := _NETWORK.match(line)) is not None:
            low, high, mean = map(float, match.groups()[1:])
            networks.append(NetworkTime(name=match[1], min_ms=low, max_ms=high, mean_ms=mean, line=line))
        elif (match := _SETTING.match(line)) is not None:
            settings[match[1]] = int(match[2])
        elif (match := _DEVICE.match(line)) is not None:
            names.setdefault(int(match[1]), match[2].strip())
            lines.setdefault(int(match[1]), line)
    return NcnnOutput(
        networks=tuple(networks), settings=settings, device_by_number=names, line_by_number=lines
    )
