"""Operators, weights and multiply-accumulates of ONNX models (onnx.proto)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from farm.core.models.contents.counts import (
    MOST_OPERATORS,
    FileContents,
    count_macs,
    count_operators,
    count_weights,
)
from farm.core.models.contents.onnx_nodes import OnnxNode, onnx_macs, operator_name, quantization_parameters
from farm.core.models.contents.onnx_shapes import inferred_shapes
from farm.core.models.inputs.onnx import value_dimensions, value_name
from farm.core.models.protobuf import BYTES, VARINT, MalformedMessage, packed_varints, protobuf_fields, signed
from farm.core.models.variant import MOST_DIMENSIONS, SlowPath

#: TensorProto.DataType of weights: real numbers, and whole ones of 8 bits and less. Quantized biases are
#: int32; shapes and indices are int64.
WEIGHT_TYPES = frozenset({1, 2, 3, 6, 10, 11, 16, 17, 18, 19, 20, 21, 22})
_GRAPH, _NODE, _INITIALIZER = 7, 1, 5
#: Of a graph: inputs, outputs, and tensors between nodes.
_VALUES = (11, 12, 13)
_LONGEST_NAME = 500
#: TensorProto.DataType; and the place of the zero point among the inputs of QLinearConv.
_INT8, _ZERO_POINT = 3, 2
_MOST_ATTRIBUTES = 64


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    kind: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Graph:
    nodes: list[OnnxNode] = field(default_factory=list)
    initializers: list[_Tensor] = field(default_factory=list)
    #: Where the messages of its values begin and end.
    values: list[tuple[int, int]] = field(default_factory=list)


def onnx_contents(content: memoryview) -> FileContents:
    """Count the nodes of the graph, without those of its branches, its initializers and its products.

    Raises:
        ValueError: it cannot be read.
    """
    graph = _graph(content)
    scales = quantization_parameters(graph.nodes)
    macs, macs_uncounted = count_macs(_macs(content, graph))
    return FileContents(
        parameters=count_weights(
            tensor.shape
            for tensor in graph.initializers
            if tensor.kind in WEIGHT_TYPES and tensor.name not in scales
        ),
        operators=count_operators(map(operator_name, graph.nodes)),
        macs=macs,
        macs_uncounted=macs_uncounted,
        slow_path=SlowPath.SIGNED_ACTIVATIONS if _has_signed_activations(graph) else None,
    )


def _has_signed_activations(graph: _Graph) -> bool:
    """Return whether a quantized convolution has a zero point of int8 for what it takes."""
    signed_names = {tensor.name for tensor in graph.initializers if tensor.kind == _INT8}
    return any(
        node.kind == "QLinearConv"
        and len(node.inputs) > _ZERO_POINT
        and node.inputs[_ZERO_POINT] in signed_names
        for node in graph.nodes
    )


def _graph(content: memoryview) -> _Graph:
    place = next(
        (
            (start, stop)
            for number, wire, start, stop in protobuf_fields(content)
            if number == _GRAPH and wire == BYTES
        ),
        None,
    )
    if place is None:
        raise MalformedMessage("it has no graph")
    graph = _Graph()
    for number, wire, start, stop in protobuf_fields(content, *place):
        if max(len(graph.nodes), len(graph.initializers), len(graph.values)) > MOST_OPERATORS:
            raise MalformedMessage(f"it has more than {MOST_OPERATORS} nodes, weights or values")
        if wire == BYTES and number == _NODE:
            graph.nodes.append(_node(content, start, stop))
        elif wire == BYTES and number == _INITIALIZER:
            graph.initializers.append(_tensor(content, start, stop))
        elif wire == BYTES and number in _VALUES:
            graph.values.append((start, stop))
    return graph


def _macs(content: memoryview, graph: _Graph) -> Iterator[int]:
    shapes = {tensor.name: tensor.shape for tensor in graph.initializers}
    for value in graph.values:
        try:
            dimensions = value_dimensions(content, value, "a value")
        except MalformedMessage:
            continue
        shapes.setdefault(value_name(content, value), tuple(size for size, _ in dimensions))
    yield from onnx_macs(graph.nodes, inferred_shapes(graph.nodes, shapes))


def _node(content: memoryview, start: int, stop: int) -> OnnxNode:
    kind, domain, inputs, outputs = "", "", list[str](), list[str]()
    attributes: dict[str, tuple[int, ...] | str] = {}
    for number, wire, begin, end in protobuf_fields(content, start, stop):
        if wire != BYTES:
            continue
        if number == 1:
            inputs.append(_text(content, begin, end))
        elif number == 2:
            outputs.append(_text(content, begin, end))
        elif number == 4:
            kind = _text(content, begin, end)
        elif number == 5 and len(attributes) < _MOST_ATTRIBUTES:
            name, value = _attribute(content, begin, end)
            attributes[name] = value
        elif number == 7:
            domain = _text(content, begin, end)
    return OnnxNode(
        kind=kind, domain=domain, inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes
    )


def _attribute(content: memoryview, start: int, stop: int) -> tuple[str, tuple[int, ...] | str]:
    """Return name and value of an attribute that is a text, a whole number or a short list of them."""
    name, text, numbers = "", "", list[int]()
    for number, wire, begin, end in protobuf_fields(content, start, stop):
        if number == 1 and wire == BYTES:
            name = _text(content, begin, end)
        elif number == 4 and wire == BYTES:
            text = _text(content, begin, end)
        elif number in (3, 8) and len(numbers) <= 2 * MOST_DIMENSIONS:
            numbers += _numbers(content, wire, begin, end)
    return name, text or tuple(numbers)


def _tensor(content: memoryview, start: int, stop: int) -> _Tensor:
    name, kind, shape = "", 0, list[int]()
    for number, wire, begin, end in protobuf_fields(content, start, stop):
        if number == 1:
            shape += _numbers(content, wire, begin, end)
            if len(shape) > MOST_DIMENSIONS:
                raise MalformedMessage(f"a tensor has more than {MOST_DIMENSIONS} dimensions")
        elif number == 2 and wire == VARINT:
            kind = begin
        elif number == 8 and wire == BYTES:
            name = _text(content, begin, end)
    return _Tensor(name, kind, tuple(shape))


def _numbers(content: memoryview, wire: int, start: int, stop: int) -> list[int]:
    """Return the whole numbers of a field, packed or not, as many as a tensor may have dimensions."""
    if wire == VARINT:
        return [signed(start)]
    return [signed(value) for value in islice(packed_varints(content, start, stop), 2 * MOST_DIMENSIONS + 1)]


def _text(content: memoryview, start: int, stop: int) -> str:
    return bytes(content[start : min(stop, start + _LONGEST_NAME)]).decode(errors="replace")
