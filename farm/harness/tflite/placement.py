"""Placements that TFLite and LiteRT tools print, in all wordings since 2019, through any log.

A delegate that was created proves nothing, nor does a list of accelerators: only nodes that it took do. The
exception is XNNPACK: it runs on the CPU, so its creation is enough when no accelerator was requested.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.core.runs.placement import (
    CPU_BACKENDS,
    Accelerator,
    Placement,
    Share,
    resolve_actual_backend,
)
from farm.harness.base.accelerators import FAILED, accelerator_of, without_failed
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines
from farm.harness.nnapi.armnn import armnn_placement
from farm.harness.nnapi.placement import accelerator_of_driver, nnapi_accelerators, nnapi_placement
from farm.harness.tflite.delegates import APPLIED, XNNPACK, DelegatedNodes, delegate_name, delegated_nodes

_CREATED = re.compile(
    r"\b(\w+) delegate created\b|Created TensorFlow Lite (?:delegate for )?(\w+)|\bApplied (\w+) delegate\."
)
_NONE = re.compile(
    r"will not be executed by the delegate|Could not create \w+ delegate|Failed to apply (?:\w+ )?delegate"
    r"|Restored original execution plan after delegate application failure"
    r"|(?:Failed|Unable) to (?:create|load) (?:the )?\w+ delegate|\b\w+ [Dd]elegate is not supported"
    r"|\b\w+ acceleration is unsupported on this platform"
    r"|Failed to create a dispatch delegate kernel|Created 0 GPU delegate kernels"
    r"|Failed to create \S{0,40}\bDelegateKernelLiteRt\b"
)
_WARNED = re.compile(
    r"Can not open OpenCL|Falling back to|ANEURALNETWORKS_(?!NO_ERROR)[A-Z_]+|not supported by \w+ delegate"
    r"|failed to prepare|delegate is not initialized|Operation is not supported"
    r"|OP is supported, but|Not supported \w+ case"
)
#: Programs of 2018 and 2019 print it in every run, whether or not NNAPI was requested.
_NO_LIBRARY = re.compile(r"unable to open library")
#: LiteRT without a vendor's libraries.
_NO_NPU = re.compile(r"NPU accelerator could not be loaded and registered")
_REQUESTED_NNAPI = re.compile(r"Use nnapi ?: \[1\]", re.IGNORECASE)
_NNAPI_FAILED = re.compile(r"NN API returned error ANEURALNETWORKS_(?!NO_ERROR)")
_NNAPI_NAME = re.compile(r"NNAPI accelerator name: \[([^\]\n]{1,400})\]")
#: Without another driver NNAPI's own kernels, on the CPU, executed NNAPI's nodes.
_NO_DRIVER = re.compile(r"NNAPI accelerators available: \[(nnapi-reference)\]")
_QNN_LIBRARY = re.compile(r"\blibQnn(Htp|Gpu|Dsp|Cpu)(?:V\d{1,4}\w{0,20})?\.so\b")
#: WebGPU without a GPU.
_SOFTWARE_ADAPTER = re.compile(r"Selected adapter: [^\n]{0,200}\badapterType=(CPU)\b")
_LIBRARY = re.compile(r"External delegate path\s*: \[([^\]\n]{1,400})\]")
_OPTIONS = re.compile(r"External delegate options\s*: \[([^\]\n]{0,400})\]")
_BACKEND_OPTION = re.compile(r"(?:backend_type|backends?|htp_backend)\s*:\s*(\w+)\s*(,)?")
#: The delegate, its library, or the NNAPI driver.
_ARMNN = re.compile(r"(?:lib)?armnn[\w.-]*", re.IGNORECASE)
#: The delegate that the tool was told to use, or an NPU's dispatch library, which no flag names.
_REQUESTED_OTHER = re.compile(
    r"Use (NNAPI|gpu|Hexagon)\s*: \[1\]|External delegate path\s*: \[(?:[^\]\n]{0,300}/)?([^/\]\n]{1,100})\]"
    r"|\b([Dd]ispatch) (?:API|library|runtime|delegate)|\blibLiteRt(Dispatch)_\w{1,60}\.so"
)
_NO_DELEGATES = (XNNPACK, "Lite", "TensorFlow")
#: Of backends that are software for several kinds of hardware; the tool names a library's delegate EXTERNAL.
_OWN_DELEGATES: Mapping[str, Sequence[str]] = {
    "nnapi": ("NNAPI",),
    "qnn": ("QNN", "EXTERNAL", "STABLE_DELEGATE", "Dispatch"),
}
_MAX_WARNINGS = 8
OWN_KERNELS = "TFLite's kernels"


def tflite_placement(
    text: str, requested: str = "", recorded: Sequence[DelegatedNodes] | None = None
) -> Placement | None:
    """Return which delegate took how many nodes, and the CPU's rest; None where the text does not show it.

    Args:
        text: what the tool printed, both streams, or the device's log of it.
        requested: the backend that was asked for; empty where only the text may say it.
        recorded: the nodes of each delegate by a file, at least one; the text then names their hardware only.
    """
    lines = log_lines(text)
    delegated = delegated_nodes(lines, recorded)
    non_xnnpack = [delegate for delegate in delegated if delegate.software != XNNPACK and delegate.nodes != 0]
    xnnpack = next(
        (delegate for delegate in delegated if delegate.software == XNNPACK and delegate.nodes != 0), None
    )
    refused = [line.quoted for line, _ in matching_lines(lines, _NONE)]
    refused += [delegate.line for delegate in delegated if delegate.nodes == 0]
    if _REQUESTED_NNAPI.search(text) is not None:
        refused += [line.quoted for line, _ in matching_lines(lines, _NO_LIBRARY)]
    if requested == "npu" and _REQUESTED_OTHER.search(text) is None:
        refused += [line.quoted for line, _ in matching_lines(lines, _NO_NPU)]
    warned = [line.quoted for line, _ in matching_lines(lines, _WARNED)]
    warnings = tuple(dict.fromkeys((*refused, *warned)))[:_MAX_WARNINGS]
    total = _total(delegated)
    shares = tuple(_share(delegate, lines, requested) for delegate in non_xnnpack)
    other = _other_than_xnnpack(lines, text, requested)
    if not shares and not refused and xnnpack is None:
        shares = _created_delegates(lines, other)
    is_part = xnnpack is not None and not xnnpack.is_all and xnnpack.nodes != (xnnpack.total or -1)
    if not shares and not refused and xnnpack is not None and other is not None and is_part:
        # The delegate that was asked for may have taken all else: XNNPACK counts the graph that is left over.
        shares = (Share(accelerator=Accelerator.UNKNOWN, by=other, line=xnnpack.line),)
        rest = _of_xnnpack(xnnpack, None)
    else:
        rest = _cpu_shares(shares, non_xnnpack, xnnpack, total, lines, refused)
    if not shares and not rest and not warnings:
        return None
    # Uncounted parts have no total.
    is_whole = all(delegate.nodes is not None for delegate in non_xnnpack) and not _exceeds_total(
        non_xnnpack, total
    )
    whole_nodes = total if is_whole else None
    placement = Placement(
        shares=(*shares, *rest), total_nodes=whole_nodes, warnings=warnings, offered=nnapi_accelerators(lines)
    )
    placement = _with_drivers(placement, text)
    placement = _with_armnn_backends(placement, text) if non_xnnpack else placement
    return without_failed(placement, lines)


def _total(delegated: Sequence[DelegatedNodes]) -> int | None:
    """Return the total; without a subgraph's number, XNNPACK may have counted a changed graph."""
    reliable = [
        delegate for delegate in delegated if delegate.software != XNNPACK or delegate.subgraph is not None
    ]
    totals = [delegate.total for delegate in reliable if delegate.total is not None]
    return max(
        totals or [delegate.total for delegate in delegated if delegate.total is not None], default=None
    )


def _other_than_xnnpack(lines: Sequence[LogLine], text: str, requested: str) -> str | None:
    """Return the delegate that was asked for, by the plan or the text; None for XNNPACK and no delegate."""
    if requested:
        return None if requested in CPU_BACKENDS else requested
    if (match := _REQUESTED_OTHER.search(text)) is not None:
        return next(name for name in match.groups() if name is not None)
    created = (
        delegate_name(match[1] or match[2] or match[3]) for _, match in matching_lines(lines, _CREATED)
    )
    return next((name for name in created if name not in _NO_DELEGATES), None)


def _share(delegate: DelegatedNodes, lines: Sequence[LogLine], requested: str) -> Share:
    by, kind = _hardware(delegate.software, lines)
    if delegate.software not in _OWN_DELEGATES.get(requested, (delegate.software,)):
        # It is no part of what was asked for, whatever its hardware is.
        kind = Accelerator.UNKNOWN if kind is not Accelerator.CPU else kind
    return Share(
        accelerator=kind, by=by, nodes=delegate.nodes, partitions=delegate.partitions, line=delegate.line
    )


def _hardware(software: str, lines: Sequence[LogLine]) -> tuple[str, Accelerator]:
    """Return a delegate's name, and its hardware where its name or its options identify it."""
    if software.upper() == "NNAPI":
        name = _last(lines, _NNAPI_NAME) or _last(lines, _NO_DRIVER)
        if next(matching_lines(lines, _NNAPI_FAILED), None) is not None:
            return f"{name or 'NNAPI'}{FAILED}", Accelerator.UNKNOWN
        return (name, accelerator_of_driver(name)) if name else ("NNAPI", Accelerator.UNKNOWN)
    if accelerator_of(software) is Accelerator.GPU and _last(lines, _SOFTWARE_ADAPTER) is not None:
        return f"{software} in software", Accelerator.CPU
    option = _BACKEND_OPTION.search(_last(lines, _OPTIONS) or "")
    if option is not None:
        # Of several, in order of preference, it is open which one took what.
        return software, Accelerator.UNKNOWN if option[2] else accelerator_of(option[1])
    libraries = {kind for line in lines for kind in _QNN_LIBRARY.findall(line.text)}
    if software == "QNN" and len(libraries) == 1:
        return software, accelerator_of(libraries.pop())
    if software == "EXTERNAL":
        library = (_last(lines, _LIBRARY) or software).rpartition("/")[2]
        return library, accelerator_of(library)
    return software, accelerator_of(software)


def _created_delegates(lines: Sequence[LogLine], other: str | None) -> tuple[Share, ...]:
    """Return the share of the first delegate that was created but logged no nodes.

    It is on the CPU for XNNPACK when no other delegate was requested, else on unknown hardware. Empty if
    there is none.
    """
    for line, match in matching_lines(lines, _CREATED):
        software = delegate_name(match[1] or match[2] or match[3])
        if software == XNNPACK and other is None:
            return (Share(accelerator=Accelerator.CPU, by=XNNPACK, line=line.quoted),)
        if software in _NO_DELEGATES:
            continue
        by, _ = _hardware(software, lines)
        return (Share(accelerator=Accelerator.UNKNOWN, by=by, line=line.quoted),)
    return ()


def _cpu_shares(
    shares: Sequence[Share],
    non_xnnpack: Sequence[DelegatedNodes],
    xnnpack: DelegatedNodes | None,
    total: int | None,
    lines: Sequence[LogLine],
    refused: Sequence[str],
) -> tuple[Share, ...]:
    """Return the CPU's shares: XNNPACK's nodes and those without a delegate."""
    delegated_count = sum(delegate.accelerated_nodes or 0 for delegate in non_xnnpack)
    is_counted = total is not None and all(delegate.accelerated_nodes is not None for delegate in non_xnnpack)
    is_counted = is_counted and not _exceeds_total(non_xnnpack, total)
    if any(delegate.is_all for delegate in non_xnnpack) or (
        is_counted and total == delegated_count and non_xnnpack
    ):
        return ()
    rest_nodes = (total or 0) - delegated_count if is_counted else None
    if xnnpack is not None:
        return _of_xnnpack(xnnpack, rest_nodes)
    if rest_nodes:
        line = next((delegate.line for delegate in non_xnnpack), refused[0] if refused else "")
        return (Share(accelerator=Accelerator.CPU, by=OWN_KERNELS, nodes=rest_nodes, line=line),)
    if refused and not shares:
        return (Share(accelerator=Accelerator.CPU, by=OWN_KERNELS, line=refused[0]),)
    return _partial_cpu_share(non_xnnpack, lines)


def _exceeds_total(non_xnnpack: Sequence[DelegatedNodes], total: int | None) -> bool:
    """Return whether delegates took more nodes than there are: they counted different things."""
    return total is not None and sum(delegate.accelerated_nodes or 0 for delegate in non_xnnpack) > total


def _of_xnnpack(xnnpack: DelegatedNodes, rest_nodes: int | None) -> tuple[Share, ...]:
    share = Share(
        accelerator=Accelerator.CPU,
        by=XNNPACK,
        nodes=xnnpack.nodes,
        partitions=xnnpack.partitions,
        line=xnnpack.line,
    )
    if rest_nodes is None or xnnpack.nodes == rest_nodes:
        return (share,)
    if xnnpack.nodes is None or xnnpack.nodes > rest_nodes:
        # It counts the nodes of a graph that was already changed.
        return (replace(share, nodes=rest_nodes),)
    return (share, replace(share, by=OWN_KERNELS, nodes=rest_nodes - xnnpack.nodes, partitions=None))


def _partial_cpu_share(non_xnnpack: Sequence[DelegatedNodes], lines: Sequence[LogLine]) -> tuple[Share, ...]:
    """Return the CPU's share where the delegate did not take all nodes. The count is unknown.

    Partitions of a delegate and of the CPU alternate, with at least one node each. If even the lower bound
    (one node per CPU partition) exceeds the delegate's nodes, report that bound, so that the run counts as a
    fallback.
    """
    for delegate in non_xnnpack:
        if (
            delegate.nodes is not None
            and delegate.total is None
            and (cpu_partitions := (delegate.partitions or 0) // 2)
        ):
            min_cpu_nodes = cpu_partitions if cpu_partitions > delegate.nodes else None
            return (
                Share(accelerator=Accelerator.CPU, by=OWN_KERNELS, nodes=min_cpu_nodes, line=delegate.line),
            )
    for line, match in matching_lines(lines, APPLIED):
        if match["extent"] == "partially" and non_xnnpack:
            return (Share(accelerator=Accelerator.CPU, by=OWN_KERNELS, line=line.quoted),)
    return ()


def _with_drivers(placement: Placement, text: str) -> Placement:
    """Replace NNAPI's share by the drivers that NNAPI's own lines in the same text name."""
    delegate = next((share for share in placement.shares if share.by == "NNAPI"), None)
    drivers = nnapi_placement(text) if delegate is not None else None
    if delegate is None or drivers is None or not drivers.shares:
        return placement
    if len(drivers.shares) == 1:
        return _with_name(placement, delegate, drivers.shares[0])
    if resolve_actual_backend(placement, "nnapi").accelerator is Accelerator.CPU:
        # Most nodes were never NNAPI's, which its own count of operations would hide.
        return placement
    # Operations of NNAPI and nodes of TFLite differ, so only one of the two is counted.
    other_shares = _uncounted_others(placement, delegate)
    total_nodes = None if other_shares else drivers.total_nodes
    return replace(placement, shares=(*drivers.shares, *other_shares), total_nodes=total_nodes)


def _with_armnn_backends(placement: Placement, text: str) -> Placement:
    """Replace the share of Arm NN's delegate or driver by the backends that Arm NN's own log shows.

    Arm NN logs its version at a lower severity than a fall back, so the version without a fall back shows
    that the first requested backend had every layer.
    """
    delegate = next((share for share in placement.shares if _ARMNN.fullmatch(share.by)), None)
    armnn = armnn_placement(text) if delegate is not None else None
    if delegate is None or armnn is None:
        return placement
    warnings = tuple(dict.fromkeys((*placement.warnings, *armnn.warnings)))[:_MAX_WARNINGS]
    placement = replace(placement, warnings=warnings)
    if len(armnn.shares) > 1:
        if resolve_actual_backend(placement, "external").accelerator is Accelerator.CPU:
            # Most nodes were never Arm NN's.
            return placement
        # The layers that fell back are not counted, so the delegate's nodes cannot be divided.
        shares = (*armnn.shares, *_uncounted_others(placement, delegate))
        return replace(placement, shares=shares, total_nodes=None)
    if not armnn.shares or (armnn.shares[0].accelerator is Accelerator.UNKNOWN and not armnn.warnings):
        return placement
    return _with_name(placement, delegate, armnn.shares[0])


def _with_name(placement: Placement, delegate: Share, only: Share) -> Placement:
    """Give a delegate's share the name and the hardware of what it handed all its nodes to."""
    line = f"{delegate.line}; {only.line}"
    named = replace(delegate, accelerator=only.accelerator, by=only.by, line=line)
    shares = tuple(named if share is delegate else share for share in placement.shares)
    return replace(placement, shares=shares)


def _uncounted_others(placement: Placement, delegate: Share) -> tuple[Share, ...]:
    return tuple(replace(share, nodes=None) for share in placement.shares if share is not delegate)


def _last(lines: Sequence[LogLine], pattern: re.Pattern[str]) -> str | None:
    matches = [match[1].strip() for _, match in matching_lines(lines, pattern)]
    return matches[-1] if matches else None
