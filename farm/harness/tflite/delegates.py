"""Lines of TFLite and LiteRT tools that count a delegate's nodes, in all wordings since 2019."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.harness.base.log_lines import LogLine, matching_lines

_REPLACING = re.compile(
    r"Replacing (?P<nodes>\d{1,7})(?: out of (?P<total>\d{1,7}))? node\(s\)"
    r" with delegate \((?P<software>\w[\w .-]{0,60})\) node"
    r"(?:, yielding (?P<partitions>\d{1,6}) partitions?(?: for subgraph (?P<subgraph>\d{1,5}))?)?"
)
#: The first Hexagon delegate has no partitions, Core ML's a comma before them, NXP's name is one word.
_DELEGATED = re.compile(
    r"(?P<software>\w{1,60} Delegate|\w{1,60}?) ?[Dd]elegate: "
    r"(?P<nodes>\d{1,7}) nodes delegated out of (?P<total>\d{1,7}) nodes"
    r"(?:,? with (?P<partitions>\d{1,6}) partitions?)?"
)
#: Few lines contain it, and the pattern is slow on those that are tried.
_NODES_DELEGATED = "nodes delegated"
#: Texas Instruments.
_TIDL = re.compile(
    r"[Nn]umber of subgraphs: ?(?P<partitions>\d{1,6}) ?, "
    r"(?P<nodes>\d{1,7}) nodes delegated out of (?P<total>\d{1,7}) nodes"
)
APPLIED = re.compile(
    r"(?:Explicitly a|A)pplied (?P<software>\w+) delegate, and the model graph will be"
    r" (?P<extent>completely|partially) executed"
    r"(?: by the delegate)?(?: w/ (?P<partitions>\d{1,6}) delegate kernels?)?"
)
_SPLIT = re.compile(
    r"(?P<nodes>\d{1,7}) operations will run on the GPU, and the remaining (?P<rest>\d{1,7})"
    r"(?: operations will run)? on the CPU"
)
_NO_SPLIT = re.compile(
    r"No operations will run on the GPU, and all (?P<rest>\d{1,7}) operations will run on the CPU"
)
#: All delegated nodes are returned to the CPU.
_RESTORED = re.compile(r"Restored original execution plan after delegate application failure")
_NOT_EXECUTED = re.compile(
    r"[Tt]hough (\w+) delegate is explicitly applied, the model graph will not be executed by the delegate"
)
_KERNELS = re.compile(r"Created (?P<partitions>[1-9]\d{0,5}) GPU delegate kernels")
#: Newer versions print it for each graph, without the number of kernels.
_API = re.compile(r"Initializ(?:ed|ing) (?:OpenCL|OpenGL|WebGPU|Metal|Vulkan)-based API")
#: A GPU's kernels: the last line on them counts.
_MADE = re.compile(
    rf"{_API.pattern}|Created [1-9]\d{{0,5}} GPU delegate kernels"
    r"|(?P<none>Created 0 GPU delegate kernels|Failed to create \S{0,40}\bDelegateKernelLiteRt\b)"
)
_PROFILE = re.compile(r"^\s*(?P<software>TfLite\w*Delegate\w*)\s+(?P<partitions>\d{1,6})\s+[\d.]+\s+[\d.]+%")
#: LiteRT replaces the nodes of an NPU by calls of compiled code, and later counts the calls.
_COMPILED = re.compile(
    r"Partitioned subgraph<(\d{1,5})>, selected (\d{1,7}) ops, from a total of (\d{1,7}) ops"
    r"\. resulted in (\d{1,6}) partitions?"
)
#: Follows the line which reports that its nodes were replaced.
_NOT_DISPATCHED = re.compile(
    r"Failed to create a dispatch delegate kernel|Failed to initialize (?:Dispatch API|QNN backend)"
)
#: Groups of the patterns; `rest` are the nodes beside those that were taken.
_COUNTS = ("nodes", "rest", "total", "partitions", "subgraph")
XNNPACK = "XNNPACK"
_DISPATCH = "Dispatch"
#: Their nodes are whole partitions, compiled before.
_OF_CALLS = (_DISPATCH, "EdgeTpuDelegateForCustomOp")
#: Likewise, where nodes do not outnumber partitions; these also compile networks while they load.
_MAYBE_OF_CALLS = ("Neutron", "Ethosu")
#: The tool's name for a delegate that it loads from a library.
_BY_LIBRARY = ("EXTERNAL", "STABLE_DELEGATE")
_GPU = "GPU"
#: The interpreter names LiteRT's delegate by this prefix and the API.
_LITERT_GPU = "LITERT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedNodes:
    """The nodes of one subgraph that one delegate took."""

    software: str
    subgraph: int | None = None
    #: None where the count is unknown; with a total, each precompiled partition counts as one node.
    nodes: int | None = None
    total: int | None = None
    partitions: int | None = None
    #: From the interpreter's own line; each graph of each model has one.
    is_replaced: bool = False
    #: The tool reports that nothing is left for the CPU.
    is_all: bool = False
    line: str

    @property
    def accelerated_nodes(self) -> int | None:
        """Return how many of the total are not the CPU's."""
        return self.partitions if self.nodes is None and self.total is not None else self.nodes


def delegated_nodes(
    lines: Sequence[LogLine], recorded: Sequence[DelegatedNodes] | None = None
) -> list[DelegatedNodes]:
    """Return the nodes of each delegate in total; 0 where it was applied and took none.

    Nodes that were returned to the CPU, or are not executed after all, belong to no delegate.

    Args:
        lines: the output.
        recorded: the nodes of each delegate where a file states them; the lines do not count nodes then.
    """
    restored = [at for at, line in enumerate(lines) if _RESTORED.search(line.text) is not None]
    last_lines = lines[restored[-1] + 1 :] if restored else lines
    idle = {delegate_name(match[1]) for _, match in matching_lines(lines, _NOT_EXECUTED)}
    idle |= {_DISPATCH for _ in matching_lines(lines, _NOT_DISPATCHED)}
    counted = _by_line(last_lines) if recorded is None else recorded
    delegates = [_of_calls(delegate, lines) for delegate in _merge_by_delegate(counted)]
    if [match["none"] is None for _, match in matching_lines(last_lines, _MADE)][-1:] == [False]:
        idle |= {delegate.software for delegate in delegates if _is_gpu(delegate.software)}
    if idle.intersection(_BY_LIBRARY):
        return [delegate for delegate in delegates if delegate.software == XNNPACK]
    return [delegate for delegate in delegates if delegate.software not in idle]


def _of_calls(delegate: DelegatedNodes, lines: Sequence[LogLine]) -> DelegatedNodes:
    """Replace counts of calls by compiled nodes, where the log has them; else a part stays uncounted."""
    is_of_calls = delegate.software in _OF_CALLS or (
        delegate.software in _MAYBE_OF_CALLS and (delegate.nodes or 0) <= (delegate.partitions or 0)
    )
    if not is_of_calls or delegate.nodes is None or delegate.nodes == 0:
        return delegate
    compiled = {match[1]: (line, match) for line, match in matching_lines(lines, _COMPILED)}
    if delegate.software == _DISPATCH and compiled:
        proof = "; ".join([delegate.line, *(line.quoted for line, _ in compiled.values())])
        nodes, total = (sum(int(match[at]) for _, match in compiled.values()) for at in (2, 3))
        return replace(delegate, nodes=nodes, total=total, partitions=delegate.nodes, line=proof)
    if delegate.nodes == delegate.total:
        return delegate
    return replace(delegate, nodes=None, partitions=delegate.nodes)


def _by_line(lines: Sequence[LogLine]) -> list[DelegatedNodes]:
    delegated = [
        _delegated(line, match)
        for pattern in (_REPLACING, _DELEGATED, _TIDL, APPLIED, _SPLIT, _NO_SPLIT, _KERNELS)
        for line, match in matching_lines(_candidates(lines, pattern), pattern)
    ]
    if not any(_is_gpu(delegate.software) for delegate in delegated):
        delegated += [_delegated(line, match) for line, match in matching_lines(lines, _API)]
    return delegated or [_delegated(line, match) for line, match in matching_lines(lines, _PROFILE)]


def _candidates(lines: Sequence[LogLine], pattern: re.Pattern[str]) -> Sequence[LogLine]:
    return [line for line in lines if _NODES_DELEGATED in line.text] if pattern is _DELEGATED else lines


def _delegated(line: LogLine, match: re.Match[str]) -> DelegatedNodes:
    """Return what the named groups of a pattern show; without a name it is TIDL's line, or a GPU's."""
    texts = match.groupdict()
    count = {name: int(texts[name]) for name in _COUNTS if texts.get(name)}
    nodes = count.get("nodes", 0 if "rest" in count else None)
    unnamed = "TIDL" if match.re is _TIDL else _GPU
    return DelegatedNodes(
        software=delegate_name(texts["software"]) if "software" in texts else unnamed,
        subgraph=count.get("subgraph"),
        nodes=nodes,
        total=(nodes or 0) + count["rest"] if "rest" in count else count.get("total"),
        partitions=count.get("partitions"),
        is_replaced=match.re is _REPLACING,
        is_all=texts.get("extent") == "completely",
        line=line.quoted,
    )


def _merge_by_delegate(delegated: Sequence[DelegatedNodes]) -> list[DelegatedNodes]:
    """Merge the lines about each delegate, and add up its graphs."""
    by_software: dict[str, list[DelegatedNodes]] = {}
    names = {delegate.software for delegate in delegated}
    gpu = next((name for name in sorted(names) if name.startswith(_LITERT_GPU)), _GPU)
    real = next((name for name in sorted(names) if name not in (*_BY_LIBRARY, XNNPACK)), None)
    for delegate in delegated:
        # The tool prints EXTERNAL where the delegate prints its own name.
        software = real if delegate.software in _BY_LIBRARY and real else delegate.software
        software = gpu if software == _GPU else software
        by_software.setdefault(software, []).append(replace(delegate, software=software))
    return [_merge(parts) for parts in by_software.values()]


def _merge(parts: Sequence[DelegatedNodes]) -> DelegatedNodes:
    complete = [part for part in parts if part.nodes is not None and part.total is not None]
    counted = [part for part in parts if part.nodes is not None]
    graphs = {(part.subgraph, part.total): part for part in complete if part.is_replaced}
    is_all = any(part.is_all for part in parts)
    if len(graphs) > 1:
        first = next(iter(graphs.values()))
        return replace(
            first,
            nodes=sum(part.nodes or 0 for part in graphs.values()),
            total=sum(part.total or 0 for part in graphs.values()),
            partitions=sum(part.partitions or 0 for part in graphs.values()),
            is_all=is_all,
        )
    # The delegate's own count of partitions leaves out what lies between them, so it comes first.
    best = next((part for part in reversed(parts) if part in complete and part.subgraph is None), None)
    best = best or (complete or counted or list(parts))[-1]
    total = best.total if best.total is not None or not is_all else best.nodes
    partitions = best.partitions or next((part.partitions for part in parts if part.partitions), None)
    return replace(best, total=total, partitions=partitions, is_all=is_all)


def _is_gpu(software: str) -> bool:
    return software == _GPU or software.startswith(_LITERT_GPU)


def delegate_name(software: str) -> str:
    """Return the short name: `TfLiteXNNPackDelegate` is XNNPACK, `TfLiteGpuDelegateV2` GPU."""
    name = re.sub(r"^TfLite|\s?Delegate(V\d)?$", "", software) or software
    short_names = (XNNPACK, "NNAPI", _GPU, "Hexagon", "QNN", "CoreML")
    return next((short for short in short_names if short.lower() == name.lower()), name)
