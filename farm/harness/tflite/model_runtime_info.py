"""The protobuf that `benchmark_model` writes to `--model_runtime_info_output_file`: nodes by delegate.

Its schema is `tensorflow/lite/profiling/proto/model_runtime_info.proto` of tensorflow/tensorflow: subgraphs
with their nodes, where those of a delegate name the nodes that they replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from farm.core.models.protobuf import BYTES, VARINT, protobuf_fields
from farm.harness.tflite.delegates import DelegatedNodes, delegate_name

FLAG = "model_runtime_info_output_file"
_SUBGRAPHS = 2
_ID, _NODES, _KIND = 1, 3, 5
_OF_DELEGATE = 8
_DELEGATE, _REPLACED = 1, 2
#: A subgraph of a delegate's own runtime, whose nodes are not the model's.
_DELEGATES_OWN = 2
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedNodes:
    """The nodes of a model, and those of them that each delegate took."""

    total: int
    delegated: tuple[DelegatedNodes, ...]

    @property
    def line(self) -> str:
        """Return what the file states, as a line."""
        taken = (f"{each.nodes} by {each.software}" for each in self.delegated)
        return f"{FLAG}: {self.total} nodes: {', '.join(taken) or 'none by a delegate'}"


def recorded_nodes(data: bytes) -> RecordedNodes | None:
    """Parse such a message; None where the bytes are none, or have no node."""
    try:
        graphs = [
            _graph(data, start, stop)
            for number, wire, start, stop in protobuf_fields(data)
            if (number, wire) == (_SUBGRAPHS, BYTES)
        ]
    except ValueError:
        return None
    recorded = RecordedNodes(
        total=sum(graph.total for graph in graphs),
        delegated=tuple(delegate for graph in graphs for delegate in graph.delegated),
    )
    return recorded if recorded.total else None


def _graph(data: bytes, start: int, stop: int) -> RecordedNodes:
    subgraph, total = 0, 0
    parts_by_delegate: dict[str, list[int]] = {}
    for number, wire, value, end in protobuf_fields(data, start, stop):
        if (number, wire) == (_KIND, VARINT) and value == _DELEGATES_OWN:
            return RecordedNodes(total=0, delegated=())
        if (number, wire) == (_ID, VARINT):
            subgraph = value
        elif (number, wire) == (_NODES, BYTES):
            parts = [_delegate(data, *part) for part in _messages(data, value, end, _OF_DELEGATE)]
            total += not parts
            for name, count in parts:
                parts_by_delegate.setdefault(name, []).append(count)
    return RecordedNodes(
        total=total,
        delegated=tuple(
            DelegatedNodes(
                software=name,
                subgraph=subgraph,
                nodes=sum(counts),
                total=total,
                partitions=len(counts),
                is_replaced=True,
                line=f"{FLAG}: {sum(counts)} of {total} nodes of subgraph {subgraph} by {name}",
            )
            for name, counts in parts_by_delegate.items()
        ),
    )


def _messages(data: bytes, start: int, stop: int, field: int) -> Iterator[tuple[int, int]]:
    """Yield where each message of a field begins and ends."""
    for number, wire, begin, end in protobuf_fields(data, start, stop):
        if (number, wire) == (field, BYTES):
            yield begin, end


def _delegate(data: bytes, start: int, stop: int) -> tuple[str, int]:
    """Return the name of a delegate, and the number of nodes that its node replaced."""
    name, replaced = "", 0
    for number, wire, value, end in protobuf_fields(data, start, stop):
        if (number, wire) == (_DELEGATE, BYTES):
            name = data[value:end].decode(errors="replace")[:_LONGEST_NAME]
        elif (number, wire) == (_REPLACED, BYTES):
            # Packed: the last byte of each number has no high bit.
            replaced += sum(byte < 0x80 for byte in data[value:end])
        elif (number, wire) == (_REPLACED, VARINT):
            replaced += 1
    return delegate_name(name), replaced
