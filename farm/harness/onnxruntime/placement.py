"""Placements in ONNX Runtime's log: what each execution provider can take, and where nodes were placed."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of, without_failed
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines
from farm.harness.nnapi.placement import nnapi_placement

#: Three counts, on one line or over several, each with a log's columns; a provider without nodes has one.
_CAPABILITY = re.compile(
    r"partitions\s{1,9}supported\s{1,9}by\s{1,9}([A-Za-z]\w{0,30})[^:\n]{0,20}:\s{0,9}(\d{1,6})"
    r"(?:(?!partitions\s{1,9}supported)[\s\S]){0,240}?"
    r"nodes\s{1,9}in\s{1,9}the\s{1,9}graph:\s{0,9}(\d{1,7})(?:(?!partitions\s{1,9}supported)[\s\S]){0,240}?"
    r"nodes\s{1,9}supported\s{1,9}by\s{1,9}\w{1,30}[^:\n]{0,20}:\s{0,9}(\d{1,7})",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"(All nodes|Node\(s\)) (?:have been )?placed on \[(\w+)\](?:[.,]? Number of nodes: (\d{1,7}))?"
)
#: Up to version 1.10.
_PROVIDER = re.compile(r"Provider: \[(\w+)\]: \[(.+)\]")
#: Providers that compile what they take: each partition becomes one node.
_COMPILING = frozenset(
    [
        "qnn",
        "nnapi",
        "coreml",
        "openvino",
        "tensorrt",
        "vitisai",
        "vsinpu",
        "rknpu",
        "snpe",
        "migraphx",
        "spacemit",
    ]
)
#: A network that was compiled before is one node of its file, so node counts mean nothing.
_COMPILED_BEFORE = re.compile(r"\bEPContext\b")
#: The provider was left out of the graph; its nodes went to the CPU.
_FAILED = re.compile(r"QNN SetupBackend failed|partitions supported by QNN[^:\n]{0,20}: 0(?!\d|, number)")
_ABSENT = re.compile(
    r"Specified provider '(\w{1,100})' is not in available provider names"
    r"|\b(\w{1,100}ExecutionProvider) is not available"
    r"|\b(\w{1,100}) execution provider is not supported in this build|\bEP Error"
    r"|Falling back to \[?'?CPUExecutionProvider",
    re.IGNORECASE,
)
_IN_USE = re.compile(
    r"(?:get_providers\(\)|session providers|providers in use|providers)\W{1,6}([\w', \"]{4,300})\]"
)
_USING = re.compile(r"^\s*using (\w+ExecutionProvider)\b|(?<!\S)-e ([a-z]\w{1,20})(?!\S)")
_REFUSED = re.compile(r"Node supported: \[0\]")
_AGAINST = re.compile(
    r"were not assigned to the preferred execution providers|is not supported for now|NNAPI_FLAG_CPU_ONLY"
    r"|Failed to (?:finalize|create) \w*\s?(?:graph|context)|QnnDsp <E>",
    re.IGNORECASE,
)
#: The library's messages begin with `QnnDsp` on an HTP, too.
_QNN_LIBRARY = re.compile(
    r"\b(?:libQnn(Htp|Gpu|Cpu|Dsp)|Qnn(Htp|Gpu|Cpu|Dsp)(?=\w{0,20}\.dll))(?:V\d{1,4}\w{0,20}|Prepare)?\b"
)
_CPU = "CPUExecutionProvider"
_MAX_WARNINGS = 5


_Placed = tuple[int | None, tuple[Share, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CapabilityReport:
    name: str
    partitions: int
    total: int
    nodes: int
    line: str


def ort_placement(text: str) -> Placement | None:
    """Return which provider took how many nodes; None where the text does not show it.

    NNAPI's provider hands its nodes to drivers that only NNAPI's own log names, so their hardware is unknown
    unless the text has that log, too.
    """
    lines = log_lines(text)
    warnings = _warnings(lines)
    placed = _by_placement(lines, text)
    total, shares = _by_capability(text, placed) or placed or (None, ())
    if not shares:
        shares = _by_list(lines)
    if not shares and not warnings:
        return None
    refined = tuple(part for share in shares for part in _split_share(share, text))
    return without_failed(Placement(shares=refined, total_nodes=total, warnings=warnings), lines)


def _by_capability(text: str, placed: _Placed | None) -> _Placed | None:
    """Return the shares by what providers can take; None where no node was placed on any of them."""
    reports: dict[str, _CapabilityReport] = {}
    for match in _CAPABILITY.finditer(text):
        report = _CapabilityReport(
            name=match[1],
            partitions=int(match[2]),
            total=int(match[3]),
            nodes=int(match[4]),
            line=" ".join(match[0].split())[:300],
        )
        reports[match[1].lower()] = _prevailing_report(reports.get(match[1].lower()), report)
    names = None if placed is None else {share.by.lower() for share in placed[1]}
    if not reports or (names is not None and not any(_provider(name).lower() in names for name in reports)):
        return None
    total = max(report.total for report in reports.values())
    shares = [
        Share(
            accelerator=provider_hardware(report.name, text),
            by=_provider(report.name),
            nodes=report.nodes,
            partitions=report.partitions,
            line=report.line,
        )
        for report in reports.values()
    ]
    rest_nodes = max(0, total - sum(share.nodes or 0 for share in shares))
    rest = Share(accelerator=Accelerator.CPU, by=_CPU, nodes=rest_nodes, line=shares[0].line)
    counted_shares = tuple(share for share in (*shares, rest) if share.nodes)
    if _COMPILED_BEFORE.search(text) is not None and any(_is_calls(share) for share in counted_shares):
        return None, tuple(
            replace(share, nodes=None) if _is_calls(share) else share for share in counted_shares
        )
    return total, counted_shares


def _prevailing_report(before: _CapabilityReport | None, report: _CapabilityReport) -> _CapabilityReport:
    """Return which of two reports is about the model.

    A provider reports again after a change of layout: the last report counts. It also reports the bodies of
    loops, which are smaller, and the rest after its own partitions became one node each.
    """
    if before is None:
        return report
    is_part = 2 * report.total < before.total
    remaining_nodes = before.total - before.nodes + before.partitions
    is_remainder = before.nodes > before.partitions and report.total == remaining_nodes
    return before if is_part or is_remainder else report


def _by_placement(lines: Sequence[LogLine], text: str) -> _Placed | None:
    counts: Counter[str] = Counter()
    first: dict[str, LogLine] = {}
    is_counted = True
    for line, match in matching_lines(lines, _PLACED):
        counts[match[2]] += int(match[3] or 0)
        first.setdefault(match[2], line)
        is_counted = is_counted and match[3] is not None
    for line, match in matching_lines(lines, _PROVIDER):
        counts[match[1]] += match[2].count("(") or match[2].count(",") + 1
        first.setdefault(match[1], line)
    if not first:
        return None
    compiled = {name for name in first if _is_compiling(name) and len(first) > 1}
    shares = tuple(
        Share(
            accelerator=provider_hardware(name, text),
            by=name,
            nodes=counts[name] if is_counted and name not in compiled else None,
            partitions=counts[name] if is_counted and name in compiled else None,
            line=line.quoted,
        )
        for name, line in first.items()
    )
    return (sum(counts.values()) if is_counted and not compiled else None), shares


def _by_list(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    """Return shares without counts: a missing provider, or a single one, is proof; a requested one is not."""
    for line, _ in (*matching_lines(lines, _ABSENT), *matching_lines(lines, _FAILED)):
        return (Share(accelerator=Accelerator.CPU, by=_CPU, line=line.quoted),)
    for line, match in matching_lines(lines, _IN_USE):
        names = re.findall(r"\w+ExecutionProvider", match[1])
        if names and set(names) == {_CPU}:
            return (Share(accelerator=Accelerator.CPU, by=_CPU, line=line.quoted),)
        if names and names[0] != _CPU:
            return (Share(accelerator=Accelerator.UNKNOWN, by=names[0], line=line.quoted),)
    for line, match in matching_lines(lines, _USING):
        name = _provider(match[1] or match[2])
        if name.lower() == _CPU.lower():
            return (Share(accelerator=Accelerator.CPU, by=_CPU, line=line.quoted),)
        return (Share(accelerator=Accelerator.UNKNOWN, by=name, line=line.quoted),)
    return ()


def _split_share(share: Share, text: str) -> tuple[Share, ...]:
    if share.accelerator is not Accelerator.UNKNOWN or "nnapi" not in share.by.lower():
        return (share,)
    drivers = nnapi_placement(text)
    kinds = {driver_share.accelerator for driver_share in drivers.shares} if drivers is not None else set()
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


def provider_hardware(name: str, text: str) -> Accelerator:
    """Return the hardware of a provider; for QNN by the library that the text names, if it is one."""
    if name.upper().startswith("QNN"):
        libraries = {match[1] or match[2] for match in _QNN_LIBRARY.finditer(text)}
        return accelerator_of(libraries.pop()) if len(libraries) == 1 else Accelerator.UNKNOWN
    return accelerator_of(name)


def _is_calls(share: Share) -> bool:
    """Return whether all counted nodes may be partitions that were compiled before."""
    return _is_compiling(share.by) and share.nodes == share.partitions


def _is_compiling(provider: str) -> bool:
    return provider.lower().removesuffix("executionprovider") in _COMPILING


def _provider(name: str) -> str:
    return name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider"


def _warnings(lines: Sequence[LogLine]) -> tuple[str, ...]:
    refused = [line.quoted for line, _ in matching_lines(lines, _REFUSED)]
    against = [line.quoted for line, _ in matching_lines(lines, _AGAINST)]
    absent = [line.quoted for line, _ in matching_lines(lines, _ABSENT)]
    failed = [line.quoted for line, _ in matching_lines(lines, _FAILED)]
    return tuple(dict.fromkeys((*absent, *failed, *against, *refused)))[:_MAX_WARNINGS]
