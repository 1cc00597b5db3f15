"""Operators, weights and multiply-accumulates of ONNX Runtime's own format; fields as in its `ort.fbs`."""

from collections.abc import Iterator, Sequence

from farm.core.models.contents.counts import (
    MOST_OPERATORS,
    FileContents,
    count_macs,
    count_operators,
    count_weights,
    few,
)
from farm.core.models.contents.onnx import WEIGHT_TYPES
from farm.core.models.contents.onnx_nodes import (
    OnnxNode,
    Shape,
    onnx_macs,
    operator_name,
    quantization_parameters,
)
from farm.core.models.flatbuffer import I32, I64, MalformedTable, Table, table_at, text_at
from farm.core.models.inputs.flatbuffers import ort_dimensions, ort_graph
from farm.core.models.variant import MOST_DIMENSIONS

_MOST_OPERANDS = 5 * MOST_OPERATORS


def ort_contents(content: memoryview) -> FileContents:
    """Count the nodes of the graph, and its initializers and products as those of an ONNX file.

    Raises:
        ValueError: it cannot be read.
    """
    graph = ort_graph(content)
    nodes = list(_ort_nodes(graph))
    scales = quantization_parameters(nodes)
    tensors = [table_at(content, place) for place in few(graph.items(0))]
    macs, macs_uncounted = count_macs(_ort_macs(graph, nodes, tensors))
    return FileContents(
        parameters=count_weights(
            tensor.numbers(2, I64, MOST_DIMENSIONS)
            for tensor in tensors
            if tensor.number(3, I32) in WEIGHT_TYPES and tensor.text(0) not in scales
        ),
        operators=count_operators(operator_name(node) for node in nodes),
        macs=macs,
        macs_uncounted=macs_uncounted,
    )


def _ort_nodes(graph: Table) -> Iterator[OnnxNode]:
    nodes = [table_at(graph.content, place) for place in few(graph.items(2))]
    operands = [[node.items(field) for field in (8, 9)] for node in nodes]
    # Nodes may share one list.
    if sum(len(places) for lists in operands for places in lists) > _MOST_OPERANDS:
        raise MalformedTable(f"its nodes have more than {_MOST_OPERANDS} inputs and outputs")
    for node, names in zip(nodes, operands, strict=True):
        inputs, outputs = (tuple(text_at(graph.content, each) for each in places) for places in names)
        yield OnnxNode(kind=node.text(5), domain=node.text(2), inputs=inputs, outputs=outputs)


def _ort_macs(graph: Table, nodes: Sequence[OnnxNode], initializers: Sequence[Table]) -> Iterator[int]:
    # Every tensor of such a file states its sizes, for the runtime inferred them when it wrote it.
    shapes: dict[str, Shape] = {each.text(0): each.numbers(2, I64, MOST_DIMENSIONS) for each in initializers}
    for place in few(graph.items(1)):
        value = table_at(graph.content, place)
        try:
            dimensions = ort_dimensions(value, "a value")
        except MalformedTable:
            continue
        shapes.setdefault(value.text(0), tuple(size for size, _ in dimensions))
    yield from onnx_macs(nodes, shapes)
