"""What ONNX Runtime logs of its execution providers: what each can take, and where nodes were placed."""

import re
from collections import Counter
from collections.abc import Sequence

from farm.core.placement import Accelerator, Placement, Share
from farm.harness.placements.accelerators import accelerator_of
from farm.harness.placements.log_lines import LogLine, log_lines, matching
from farm.harness.placements.nnapi import nnapi_placement

#: Three counts, on one line or over several, each of which may carry a log's columns.
_CAPABILITY = re.compile(
    r"partitions supported by ([A-Za-z]\w{0,30})[^:\n]{0,20}:\s{0,3}(\d{1,6})[\s\S]{0,240}?"
    r"nodes in the graph:\s{0,3}(\d{1,7})[\s\S]{0,240}?"
    r"nodes supported by \w{1,30}[^:\n]{0,20}:\s{0,3}(\d{1,7})",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"(All nodes|Node\(s\)) (?:have been )?placed on \[(\w+)\](?:[.,]? Number of nodes: (\d{1,7}))?"
)
#: Up to version 1.10.
_PROVIDER = re.compile(r"Provider: \[(\w+)\]: \[(.+)\]")
_ABSENT = re.compile(
    r"Specified provider '(\w+)' is not in available provider names|(\w+ExecutionProvider) is not available"
    r"|(\w+) execution provider is not supported in this build|EP Error"
    r"|Falling back to \[?'?CPUExecutionProvider",
    re.IGNORECASE,
)
_IN_USE = re.compile(
    r"(?:get_providers\(\)|session providers|providers in use|providers)\W{1,6}([\w', \"]{4,300})\]"
)
_USING = re.compile(r"^\s*using (\w+ExecutionProvider)\b|-e ([a-z]\w{1,20})\b")
_REFUSED = re.compile(r"Node supported: \[0\]")
_AGAINST = re.compile(
    r"were not assigned to the preferred execution providers|is not supported for now|NNAPI_FLAG_CPU_ONLY"
    r"|Failed to (?:finalize|create) \w*\s?(?:graph|context)|QnnDsp <E>",
    re.IGNORECASE,
)
_QNN_LIBRARY = re.compile(r"Qnn(Htp|Gpu|Cpu|Dsp)(?:V\d+\w*)?(?:\.so|\.dll|\b)")
_CPU = "CPUExecutionProvider"
_MOST_WARNINGS = 5


def ort_placement(text: str) -> Placement | None:
    """Which provider took how many nodes; None where the text tells nothing.

    NNAPI's provider hands its nodes to drivers that only NNAPI's own log names, so their hardware is unknown
    unless the text has that, too.
    """
    lines = log_lines(text)
    warnings = _warnings(lines)
    total, shares = _by_capability(text) or _by_placement(lines) or (None, ())
    if not shares:
        shares = _by_list(lines)
    if not shares and not warnings:
        return None
    refined = tuple(part for share in shares for part in _refined(share, text))
    return Placement(shares=refined, total_nodes=total, warnings=warnings)


def _by_capability(text: str) -> tuple[int, tuple[Share, ...]] | None:
    # A provider is asked twice where the layout changes: the last answer stands.
    last = {match[1].lower(): match for match in _CAPABILITY.finditer(text)}
    if not last:
        return None
    total = max(int(match[3]) for match in last.values())
    shares = [
        Share(
            accelerator=_hardware(match[1], text),
            by=_provider(match[1]),
            nodes=int(match[4]),
            partitions=int(match[2]),
            line=" ".join(match[0].split())[:300],
        )
        for match in last.values()
    ]
    left = max(0, total - sum(share.nodes or 0 for share in shares))
    rest = Share(accelerator=Accelerator.CPU, by=_CPU, nodes=left, line=shares[0].line)
    return total, tuple(share for share in (*shares, rest) if share.nodes)


def _by_placement(lines: Sequence[LogLine]) -> tuple[int | None, tuple[Share, ...]] | None:
    counts: Counter[str] = Counter()
    first: dict[str, LogLine] = {}
    is_counted = True
    for line, match in matching(lines, _PLACED):
        counts[match[2]] += int(match[3] or 0)
        first.setdefault(match[2], line)
        is_counted = is_counted and match[3] is not None
    for line, match in matching(lines, _PROVIDER):
        counts[match[1]] += match[2].count("(") or match[2].count(",") + 1
        first.setdefault(match[1], line)
    if not first:
        return None
    shares = tuple(
        Share(
            accelerator=accelerator_of(name),
            by=name,
            nodes=counts[name] if is_counted else None,
            line=line.quoted,
        )
        for name, line in first.items()
    )
    return (sum(counts.values()) if is_counted else None), shares


def _by_list(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    """Without counts: a provider that is not there, or alone, is proof; one that was asked for is not."""
    for line, _ in matching(lines, _ABSENT):
        return (Share(accelerator=Accelerator.CPU, by=_CPU, line=line.quoted),)
    for line, match in matching(lines, _IN_USE):
        names = re.findall(r"\w+ExecutionProvider", match[1])
        if names and set(names) == {_CPU}:
            return (Share(accelerator=Accelerator.CPU, by=_CPU, line=line.quoted),)
        if names and names[0] != _CPU:
            return (Share(accelerator=Accelerator.UNKNOWN, by=names[0], line=line.quoted),)
    for line, match in matching(lines, _USING):
        return (Share(accelerator=Accelerator.UNKNOWN, by=_provider(match[1] or match[2]), line=line.quoted),)
    return ()


def _refined(share: Share, text: str) -> tuple[Share, ...]:
    if share.accelerator is not Accelerator.UNKNOWN or "nnapi" not in share.by.lower():
        return (share,)
    drivers = nnapi_placement(text)
    kinds = {each.accelerator for each in drivers.shares} if drivers is not None else set()
    if drivers is None or len(kinds) != 1:
        return (share,)
    driver = drivers.shares[0]
    line = f"{share.line}; {driver.line}"
    return (
        Share(
            accelerator=driver.accelerator,
            by=f"{share.by} ({driver.by})",
            nodes=share.nodes,
            partitions=share.partitions,
            line=line,
        ),
    )


def _hardware(name: str, text: str) -> Accelerator:
    if name.upper().startswith("QNN") and (library := _QNN_LIBRARY.search(text)) is not None:
        return accelerator_of(library[1])
    return accelerator_of(name)


def _provider(name: str) -> str:
    return name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider"


def _warnings(lines: Sequence[LogLine]) -> tuple[str, ...]:
    refused = [line.quoted for line, _ in matching(lines, _REFUSED)]
    against = [line.quoted for line, _ in matching(lines, _AGAINST)]
    absent = [line.quoted for line, _ in matching(lines, _ABSENT)]
    return tuple(dict.fromkeys((*absent, *against, *refused)))[:_MOST_WARNINGS]
