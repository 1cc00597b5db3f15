"""Placements that ExecuTorch runners and Qualcomm's QNN print.

An ExecuTorch program names its backends when it is exported; one that is not registered ends the run.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines
from farm.harness.executorch.executorch_inspector import inspector_table_rows

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
_MOST_WARNINGS = 5


def executorch_placement(text: str) -> Placement | None:
    """Return the backends that a program used; None where the text names none."""
    lines = log_lines(text)
    missing = [line.quoted for line, _ in matching_lines(lines, _NOT_REGISTERED)]
    errors = [line.quoted for line, _ in matching_lines(lines, _QNN_ERROR)]
    warnings = tuple(dict.fromkeys((*missing, *errors)))[:_MOST_WARNINGS]
    if missing:
        return Placement(shares=(), warnings=warnings)
    shares = qnn_shares(lines) or _shares_by_name(lines)
    total, counted = _with_call_counts(lines, shares)
    if not counted and not warnings:
        return None
    return Placement(shares=counted, total_nodes=total, warnings=warnings)


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
            return total, tuple(share for share in (_with_nodes(shares[0], calls), rest) if share.nodes)
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


def _with_nodes(share: Share, nodes: int) -> Share:
    return Share(accelerator=share.accelerator, by=share.by, nodes=nodes, line=share.line)
