"""Operators and weights of ONNX Runtime's own format and of ExecuTorch's programs.

Fields are numbered as in the schemas: onnxruntime's `ort.fbs`, executorch's `program.fbs`.
"""

from collections.abc import Iterator

from farm.core.models.contents.counts import FileContents, count_operators, count_weights, few
from farm.core.models.contents.onnx import WEIGHT_TYPES, OnnxNode, operator_name, quantization_parameters
from farm.core.models.flatbuffer import (
    I32,
    I64,
    U8,
    U32,
    MalformedTable,
    Table,
    root_table,
    table_at,
    text_at,
)
from farm.core.models.inputs.flatbuffers import default_method, ort_graph
from farm.core.models.variant import MOST_DIMENSIONS


def ort_contents(content: memoryview) -> FileContents:
    """Count the nodes of the graph, and its initializers as those of an ONNX file.

    Raises:
        ValueError: it cannot be read.
    """
    graph = ort_graph(content)
    nodes = [_ort_node(table_at(content, place)) for place in few(graph.items(3))]
    scales = quantization_parameters(nodes)
    tensors = (table_at(content, place) for place in few(graph.items(0)))
    return FileContents(
        parameters=count_weights(
            tensor.numbers(2, I64, MOST_DIMENSIONS)
            for tensor in tensors
            if tensor.number(3, I32) in WEIGHT_TYPES and tensor.text(0) not in scales
        ),
        operators=count_operators(operator_name(node) for node in nodes),
    )


def _ort_node(node: Table) -> OnnxNode:
    inputs = tuple(text_at(node.content, place) for place in few(node.items(8)))
    return OnnxNode(kind=node.text(5), domain=node.text(2), inputs=inputs)


_KERNEL_CALL, _DELEGATE_CALL = 1, 2


def executorch_contents(content: memoryview) -> FileContents:
    """Count the calls of kernels and delegates of the method that runners take by default.

    Weights are not counted: a delegate keeps its own where only it can read them.

    Raises:
        ValueError: it cannot be read.
    """
    methods = [table_at(content, place) for place in few(root_table(content).items(1))]
    if not methods:
        raise MalformedTable("it has no method")
    return FileContents(operators=count_operators(_calls(default_method(methods))))


def _calls(method: Table) -> Iterator[str]:
    content = method.content
    kernels = [_kernel_name(table_at(content, place)) for place in few(method.items(6))]
    delegates = [table_at(content, place).text(0) for place in few(method.items(7))]
    by_kind = {_KERNEL_CALL: kernels, _DELEGATE_CALL: delegates}
    for chain in few(method.items(5)):
        for place in few(table_at(content, chain).items(2)):
            instruction = table_at(content, place)
            called, call = by_kind.get(instruction.number(0, U8)), instruction.table(1)
            # Moves, jumps and releases compute nothing.
            if called is None or call is None:
                continue
            if (index := call.number(0, U32)) >= len(called):
                raise MalformedTable(f"a call of operator {index}, there are {len(called)}")
            yield called[index]


def _kernel_name(operator: Table) -> str:
    name, overload = operator.text(0), operator.text(1)
    return f"{name}.{overload}" if overload else name
