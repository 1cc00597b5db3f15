"""Operators and weights of ONNX models (onnx.proto)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from farm.core.models.contents.counts import MOST_OPERATORS, FileContents, count_operators, count_weights
from farm.core.models.protobuf import BYTES, VARINT, MalformedMessage, protobuf_fields, signed
from farm.core.models.variant import MOST_DIMENSIONS

#: TensorProto.DataType of weights: real numbers, and whole ones of 8 bits and less. Quantized biases are
#: int32; shapes and indices are int64.
WEIGHT_TYPES = frozenset({1, 2, 3, 6, 10, 11, 16, 17, 18, 19, 20, 21, 22})
_DEQUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
_STANDARD_DOMAINS = ("", "ai.onnx")
_GRAPH, _NODE, _INITIALIZER = 7, 1, 5
_LONGEST_NAME = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """A node of a graph."""

    kind: str
    domain: str
    inputs: tuple[str, ...]


def operator_name(node: OnnxNode) -> str:
    """Return the kind of a node, with its domain where that is not the standard one."""
    return node.kind if node.domain in _STANDARD_DOMAINS else f"{node.domain}.{node.kind}"


def quantization_parameters(nodes: Iterable[OnnxNode]) -> frozenset[str]:
    """Return the names of the scales and zero points, which are no weights."""
    return frozenset(name for node in nodes if node.kind in _DEQUANTIZERS for name in node.inputs[1:])


def onnx_contents(content: memoryview) -> FileContents:
    """Count the nodes of the graph, without those of its branches, and its initializers.

    Raises:
        ValueError: it cannot be read.
    """
    graph = next(
        (
            (start, stop)
            for number, wire, start, stop in protobuf_fields(content)
            if number == _GRAPH and wire == BYTES
        ),
        None,
    )
    if graph is None:
        raise MalformedMessage("it has no graph")
    nodes: list[OnnxNode] = []
    weights: list[tuple[str, tuple[int, ...]]] = []
    for number, wire, start, stop in protobuf_fields(content, *graph):
        if len(nodes) > MOST_OPERATORS or len(weights) > MOST_OPERATORS:
            raise MalformedMessage(f"it has more than {MOST_OPERATORS} nodes or weights")
        if wire == BYTES and number == _NODE:
            nodes.append(_node(content, start, stop))
        elif wire == BYTES and number == _INITIALIZER:
            weights += _weight(content, start, stop)
    scales = quantization_parameters(nodes)
    return FileContents(
        parameters=count_weights(shape for name, shape in weights if name not in scales),
        operators=count_operators(map(operator_name, nodes)),
    )


def _node(content: memoryview, start: int, stop: int) -> OnnxNode:
    kind, domain, inputs = "", "", []
    for number, wire, begin, end in protobuf_fields(content, start, stop):
        if wire != BYTES:
            continue
        if number == 1:
            inputs.append(_text(content, begin, end))
        elif number == 4:
            kind = _text(content, begin, end)
        elif number == 7:
            domain = _text(content, begin, end)
    return OnnxNode(kind=kind, domain=domain, inputs=tuple(inputs))


def _weight(content: memoryview, start: int, stop: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of a tensor that holds weights."""
    name, kind, shape = "", 0, list[int]()
    for number, wire, begin, end in protobuf_fields(content, start, stop):
        if number == 1:
            shape += [signed(begin)] if wire == VARINT else _packed(content, begin, end)
            if len(shape) > MOST_DIMENSIONS:
                raise MalformedMessage(f"a tensor has more than {MOST_DIMENSIONS} dimensions")
        elif number == 2 and wire == VARINT:
            kind = begin
        elif number == 8 and wire == BYTES:
            name = _text(content, begin, end)
    if kind in WEIGHT_TYPES:
        yield name, tuple(shape)


def _packed(content: memoryview, start: int, stop: int) -> list[int]:
    """Return the numbers of a packed field, of which there are at most a few."""
    if stop - start > 10 * MOST_DIMENSIONS:
        raise MalformedMessage(f"a tensor has more than {MOST_DIMENSIONS} dimensions")
    values, value, shift = [], 0, 0
    for byte in content[start:stop]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(signed(value))
            value, shift = 0, 0
    return values


def _text(content: memoryview, start: int, stop: int) -> str:
    return bytes(content[start : min(stop, start + _LONGEST_NAME)]).decode(errors="replace")
