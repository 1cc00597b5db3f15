"""Placements in the log of Android's NNAPI runtime with `debug.nn.vlog`: which driver got which operations.

The wording of its partitioner is much the same from Android 9 on, which numbers drivers without their names;
MediaTek's has a class name of its own. Lists of available drivers, `Found interface`, prove nothing.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of, without_failed
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines

_BEST = re.compile(r"findBestDeviceForEachOperation\([^()\n]*\)\s*=\s*-?\d+\s*\(([^()\n]+)\)")
_ONLY = re.compile(r"only one best device:\s*-?\d+\s*=\s*(\S[^\n]*)")
#: Up to Android 10 `ExecutionStep#0 for qti-dsp`, in Android 9 with the step's model after it.
_STEP = re.compile(r"Step\s?#?\s*\d+(?::\s*execute on (\S[^\n]*)|\s+for (?:(\S+)\s+submodel: |(\S[^\n]*)))")
#: Android 9: the last number is the CPU's.
_NUMBERED = re.compile(r"findBestDeviceForEachOperation\([^()\n]*\)\s*=\s*(\d{1,3})\s*$")
_DEVICES = re.compile(r"deviceCount\s*=\s*(\d{1,3})\b")
_COMPILED = re.compile(
    r"ExecutionStep::finish(?:Sub|Step)Model, compilation on (\S[^\n]*)|\bSIMPLE for (\S[^\n]*)"
)
#: Logged by newer Androids without `debug.nn.vlog`, for models that one driver took whole.
_FINISHED = re.compile(r"::\w{1,40}\W{1,3}compilation finished successfully on (\S[^\n]*)")
_COUNT = re.compile(r"operationCount\s*=\s*(\d{1,7})")
#: The partitioner's index -1 is its own interpreter of control flow.
_INTERPRETER = "NNAPI"
_AGAINST = re.compile(
    r"ANEURALNETWORKS_(?!NO_ERROR)[A-Z_]+|No driver can do|not in the (?:device )?manifest"
    r"|in either framework or device manifest|fall(?:ing)?[ _-]?back|cpuFallback"
    r"|\*\*Execution failed\*\*|unable to open library libneuralnetworks|Failed to load libneuralnetworks"
)
#: A driver failed while it compiled or executed, and the runtime's own interpreter did the step or the whole.
_FELL_BACK = re.compile(r"\bcpuFallback(Full|Partial)\b|finish with CPU fallback")
_MAX_WARNINGS = 5
_NAME = r"[A-Za-z][A-Za-z0-9._-]{0,80}"
#: TFLite lists them; the runtime logs each driver that it finds.
_OFFERED = re.compile(rf"NNAPI accelerators available: \[({_NAME}(?:,{_NAME}){{0,19}}),?\]", re.ASCII)
_FOUND = re.compile(rf"\bFound interface ({_NAME})(?=\s|$)", re.ASCII)


def nnapi_placement(log: str, pid: int | None = None) -> Placement | None:
    """Return where NNAPI put the operations of all compiled models; None where the log does not show it.

    Args:
        log: of the device, or what a tool prints of it.
        pid: the process that counts; None takes all where they agree on one process.
    """
    lines, ambiguity = _of_process(log_lines(log), pid)
    warnings = tuple(line.quoted for line, _ in matching_lines(lines, _AGAINST))[:_MAX_WARNINGS]
    shares = _operations(lines) or _devices(lines, _ONLY) or _devices(lines, _STEP)
    shares = shares or _devices(lines, _COMPILED) or _devices(lines, _FINISHED)
    shares = _after_fall_back(shares, lines)
    if not shares and not warnings and ambiguity is None:
        return None
    counts = [share.nodes for share in shares]
    total = None if None in counts or not counts else sum(count or 0 for count in counts)
    placement = Placement(
        shares=shares,
        total_nodes=total,
        warnings=(*warnings, *((ambiguity,) if ambiguity else ())),
        offered=nnapi_accelerators(lines),
    )
    return without_failed(placement, lines)


def nnapi_accelerators(lines: Sequence[LogLine]) -> tuple[str, ...]:
    """Return the accelerators that a tool or the runtime lists, in order, each once.

    None of them proves where a model ran; the runtime's own `nnapi-reference` is always listed.
    """
    names = [name for _, match in matching_lines(lines, _OFFERED) for name in match[1].split(",")]
    names += [match[1] for _, match in matching_lines(lines, _FOUND)]
    return tuple(dict.fromkeys(name for name in names if name))


def accelerator_of_driver(name: str) -> Accelerator:
    """Return the hardware behind a name in the NNAPI runtime's list."""
    return Accelerator.CPU if name in ("CPU", _INTERPRETER) else accelerator_of(name)


def _of_process(lines: Sequence[LogLine], pid: int | None) -> tuple[list[LogLine], str | None]:
    """Return the lines that count, or why there are none where several processes placed models."""
    if pid is not None:
        return [line for line in lines if line.pid in (pid, None)], None
    patterns = (_BEST, _NUMBERED, _ONLY, _STEP, _COMPILED, _FINISHED)
    writers = {line.pid for pattern in patterns for line, _ in matching_lines(lines, pattern)}
    if len(writers) > 1:
        return [], f"{len(writers)} processes placed models, and nothing tells which is the run"
    return list(lines), None


def _operations(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    counts: Counter[str] = Counter()
    first: dict[str, LogLine] = {}
    for line, match in matching_lines(lines, _BEST):
        name = match[1].strip()
        counts[name] += line.times
        first.setdefault(name, line)
    steps = Counter(_device_name(match) for _, match in matching_lines(lines, _STEP))
    if not counts:
        return _shares_by_number(lines, steps)
    return tuple(
        _share(name, first[name], nodes=count, partitions=steps.get(name)) for name, count in counts.items()
    )


def _shares_by_number(lines: Sequence[LogLine], steps: Counter[str]) -> tuple[Share, ...]:
    """Return the shares of operations with numbered drivers: the CPU and one driver, which the steps name."""
    drivers = [name for name in steps if accelerator_of_driver(name) is not Accelerator.CPU]
    devices = {int(match[1]) for _, match in matching_lines(lines, _DEVICES)}
    operations = [(line, int(match[1])) for line, match in matching_lines(lines, _NUMBERED)]
    if len(devices) != 1 or len(drivers) != 1 or len(steps) != 2 or len({at for _, at in operations}) != 2:
        return ()
    cpu = max(devices) - 1
    if cpu not in {at for _, at in operations}:
        return ()
    shares = []
    for name in steps:
        operation_lines = [line for line, at in operations if (at == cpu) is (name not in drivers)]
        nodes = sum(line.times for line in operation_lines)
        shares.append(_share(name, operation_lines[0], nodes=nodes, partitions=steps[name]))
    return tuple(shares)


def _device_name(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


def _devices(lines: Sequence[LogLine], pattern: re.Pattern[str]) -> tuple[Share, ...]:
    """Return the drivers without a line for each operation; counted where one took all."""
    partitions: Counter[str] = Counter()
    first: dict[str, LogLine] = {}
    for line, match in matching_lines(lines, pattern):
        name = _device_name(match)
        partitions[name] += 1
        first.setdefault(name, line)
    counted = [int(match[1]) for _, match in matching_lines(lines, _COUNT)]
    nodes = sum(counted) if len(partitions) == 1 and counted else None
    return tuple(_share(name, line, nodes=nodes, partitions=partitions[name]) for name, line in first.items())


def _after_fall_back(shares: tuple[Share, ...], lines: Sequence[LogLine]) -> tuple[Share, ...]:
    """Give all to the CPU where it repeated the whole; single steps leave the hardware unknown."""
    fell_back = list(matching_lines(lines, _FELL_BACK))
    # Each compiled model has this line, and a delegate compiles several for one network.
    compiled = sum(1 for _, match in fell_back if match[1] is None)
    of_all = "Full" if compiled >= len(list(matching_lines(lines, _COUNT))) else "Partial"
    line_by_extent = {match[1] or of_all: line for line, match in fell_back}
    if not line_by_extent:
        return shares
    line = line_by_extent.get("Full") or next(iter(line_by_extent.values()))
    kind = Accelerator.CPU if "Full" in line_by_extent else Accelerator.UNKNOWN
    return tuple(
        share
        if share.accelerator is Accelerator.CPU
        else replace(share, accelerator=kind, line=f"{share.line}; {line.quoted}")
        for share in shares
    )


def _share(name: str, line: LogLine, *, nodes: int | None, partitions: int | None) -> Share:
    by = "NNAPI's interpreter" if name == _INTERPRETER else name
    return Share(
        accelerator=accelerator_of_driver(name), by=by, nodes=nodes, partitions=partitions, line=line.quoted
    )
