"""Placements that ExecuTorch runners and Qualcomm's QNN print.

An ExecuTorch program names its backends when it is exported; one that is not registered ends the run.
Its Inspector prints a table of a profile's events in plain columns, in a frame, or separated by tabs. Its
columns differ by version and options: percentiles may stand before the average, the raw values before those,
and an index before all. The heading names them.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of, without_failed
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines
from farm.harness.base.output_lines import plain_lines

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+-]?[0-9]{1,3})?"
_EVENT, _DELEGATED, _BACKEND = "event_name", "is_delegated_op", "delegate_backend_name"
#: With a frame, and without one.
_BETWEEN = re.compile(r"(?<!\s)\s*[\u2502|]\s*|\t")
_ENDS = re.compile(r"^\s*[\u2502|]|[\u2502|]\s*$")
_IN_ROWS = ("True", "False", _EVENT)
#: Without a frame: what a row ends with. Columns stand two spaces apart; an empty cell leaves nothing.
_TAIL = re.compile(r"\b(True|False)(?:\s+(\w{1,60}))?$")
_APART = re.compile(r"\s{2,}")
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s|$)")
#: The raw values, which may stand right behind an event's name.
_RAW_VALUES = re.compile(r"(?<!\s)\s+\[[^\[\]]*\]$")
_INDEX = re.compile(r"^[0-9]{1,9}\s+")
#: Runners that list the backends of the method: `delegates: XnnpackBackend`, `Method uses backend
#: VulkanBackend`.
_USES = re.compile(
    r"\b(?:uses|using|delegate|delegates|backend|backends)\b[ :=]+\[?'?(\w+Backend)\b", re.IGNORECASE
)
#: Backends that a program was built with, whether or not the model uses them.
_OFFERS = re.compile(r"\b(?:supported|available|registered|registers?|registering|linked)\b", re.IGNORECASE)
_CALLS = re.compile(
    r"\b(?:delegate calls?|delegated (?:calls|nodes|ops))\s*[:=]\s*(\d{1,6})"
    r"(?:\s*(?:/|of|out of)\s*(\d{1,6}))?",
    re.IGNORECASE,
)
_NOT_REGISTERED = re.compile(r"Backend (\w+) is not (?:registered|available)")
_QNN = re.compile(r"Initialize Qnn backend parameters for Qnn executorch backend type (\d{1,3})")
_QNN_SEEN = re.compile(r"\[Qnn ExecuTorch\]")
_QNN_ERROR = re.compile(r"\[ERROR\] ?\[Qnn ExecuTorch\]|\bE \[Qnn ExecuTorch\]|\bQnn\w{2,12}\s*:?\s*<E>")
#: After these nothing was initialised.
_QNN_FAILED = re.compile(
    r"<E> (?:Failed to load skel|Transport layer setup failed|Failed to create transport for device)"
    r"|Failed to create (?:device|backend)_handle|Fail(?:ed)? to (?:configure|initialize) Qnn"
)
#: ExecuTorch's numbers, then QNN's own; a number with two meanings is left out.
_QNN_TYPES: Mapping[str, Accelerator] = MappingProxyType(
    {
        "1": Accelerator.GPU,
        "2": Accelerator.NPU,
        "3": Accelerator.DSP,
        "5": Accelerator.DSP,
        "6": Accelerator.NPU,
    }
)
#: Of Inspector's table: an operator of the CPU, and everything that a delegate did, whose parts may have
#: rows.
_OPERATOR, _DELEGATE = "native_call_", "DELEGATE_CALL"
_MAX_WARNINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorRow:
    """One event of a profile."""

    event: str
    delegated: bool
    #: Empty where the table has no such column.
    backend: str = ""
    line: str = ""


def inspector_table_rows(text: str) -> list[InspectorRow]:
    """Return every row of each table, in order."""
    rows: list[InspectorRow] = []
    heading: list[str] = []
    for line in plain_lines(text):
        if not any(word in line for word in _IN_ROWS):
            continue
        cells = [cell.strip() for cell in _BETWEEN.split(_ENDS.sub("", line))]
        if _EVENT in cells or (_EVENT in line and _DELEGATED in line):
            heading = cells if len(cells) > 1 else [cell for cell in re.split(r"\s{2,}", line) if cell]
        elif (row := _framed_row(cells, heading, line) if len(cells) > 1 else _plain_row(line)) is not None:
            rows.append(row)
    return rows


def _framed_row(cells: Sequence[str], heading: Sequence[str], line: str) -> InspectorRow | None:
    """Parse a row of a framed table; trailing empty cells may be missing."""
    names = heading[1:] if heading and not heading[0] else heading
    cells = cells[1:] if cells[0].isdigit() else cells
    if not {_EVENT, _DELEGATED} <= set(names) or len(cells) > len(names):
        return None
    cell_by_name = dict(zip(names, cells, strict=False))
    if cell_by_name.get(_DELEGATED) not in ("True", "False"):
        return None
    return InspectorRow(
        event=cell_by_name.get(_EVENT, ""),
        delegated=cell_by_name[_DELEGATED] == "True",
        backend=cell_by_name.get(_BACKEND, ""),
        line=line,
    )


def _plain_row(line: str) -> InspectorRow | None:
    """Parse a row without a frame: block, event, raw values, numbers, other columns, delegated, backend."""
    tail = _TAIL.search(line)
    if tail is None:
        return None
    columns = _APART.split(_INDEX.sub("", line[: tail.start()], count=1).rstrip())
    first_number = next((at for at, cell in enumerate(columns) if at > 1 and _NUMBERS.match(cell)), None)
    if first_number is None:
        return None
    event = _RAW_VALUES.sub("", "  ".join(columns[1:first_number]))
    return InspectorRow(event=event, delegated=tail[1] == "True", backend=tail[2] or "", line=line)


def executorch_placement(text: str) -> Placement | None:
    """Return the backends that a program used; None where the text names none."""
    lines = log_lines(text)
    missing = [line.quoted for line, _ in matching_lines(lines, _NOT_REGISTERED)]
    errors = [line.quoted for line, _ in matching_lines(lines, _QNN_ERROR)]
    warnings = tuple(dict.fromkeys((*missing, *errors)))[:_MAX_WARNINGS]
    if missing:
        return Placement(shares=(), warnings=warnings)
    shares = qnn_shares(lines) or _shares_by_name(lines)
    total, counted = _with_call_counts(lines, shares)
    if not counted and not warnings:
        return None
    return without_failed(Placement(shares=counted, total_nodes=total, warnings=warnings), lines)


def qnn_shares(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    """Return QNN's share, with the hardware of the backend that it initialised; else unknown."""
    has_failed = next(matching_lines(lines, _QNN_FAILED), None) is not None
    for line, match in matching_lines(lines, _QNN):
        if has_failed:
            return (Share(accelerator=Accelerator.UNKNOWN, by="QnnBackend", line=line.quoted),)
        kind = _QNN_TYPES.get(match[1], Accelerator.UNKNOWN)
        return (Share(accelerator=kind, by="QnnBackend", line=line.quoted),)
    for line, _ in matching_lines(lines, _QNN_SEEN):
        return (Share(accelerator=Accelerator.UNKNOWN, by="QnnBackend", line=line.quoted),)
    return ()


def _shares_by_name(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    first: dict[str, LogLine] = {}
    for line, match in matching_lines(lines, _USES):
        if _OFFERS.search(line.text) is None:
            first.setdefault(match[1], line)
    return tuple(
        Share(accelerator=_hardware(name), by=name, line=line.quoted) for name, line in first.items()
    )


def _hardware(name: str) -> Accelerator:
    return Accelerator.UNKNOWN if name.startswith(("Qnn", "CoreML")) else accelerator_of(name)


def _with_call_counts(
    lines: Sequence[LogLine], shares: tuple[Share, ...]
) -> tuple[int | None, tuple[Share, ...]]:
    """Count the calls of delegates, where a profile or the runner prints them."""
    for line, match in matching_lines(lines, _CALLS):
        calls, total = int(match[1]), int(match[2]) if match[2] else None
        if calls == 0 and not shares:
            return total, (Share(accelerator=Accelerator.CPU, by="portable", nodes=total, line=line.quoted),)
        if total is not None and len(shares) == 1 and calls <= total:
            rest = Share(accelerator=Accelerator.CPU, by="portable", nodes=total - calls, line=line.quoted)
            return total, tuple(
                share for share in (replace(shares[0], nodes=calls, partitions=None), rest) if share.nodes
            )
        return None, shares
    return _with_inspected_events(lines, shares)


def _with_inspected_events(
    lines: Sequence[LogLine], shares: tuple[Share, ...]
) -> tuple[int | None, tuple[Share, ...]]:
    is_table = not shares and any("is_delegated_op" in line.text for line in lines)
    rows = inspector_table_rows("\n".join(line.text for line in lines)) if is_table else []
    parts = [row for row in rows if row.delegated] or [row for row in rows if row.event == _DELEGATE]
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for row in (*parts, *(row for row in rows if row.event.startswith(_OPERATOR) and not row.delegated)):
        name = row.backend or ("delegate" if row in parts else "portable")
        counts[name] += 1
        first.setdefault(name, row.line)
    event_shares = tuple(
        Share(accelerator=_hardware(name), by=name, nodes=counts[name], line=" ".join(line.split())[:300])
        for name, line in first.items()
    )
    return (sum(counts.values()) if counts else None), event_shares or shares
