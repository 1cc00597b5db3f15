"""The inputs of models that are flatbuffers: TensorFlow Lite, ONNX Runtime's own format, and ExecuTorch.

Fields are numbered as in the schemas: tensorflow's `schema.fbs`, onnxruntime's `ort.fbs`, executorch's
`program.fbs` and `scalar_type.fbs`.
"""

from collections.abc import Iterator, Mapping, Sequence

from farm.core.models.flatbuffer import (
    I8,
    I32,
    I64,
    U8,
    MalformedTable,
    Table,
    root_table,
    table_at,
    text_at,
)
from farm.core.models.inputs.onnx import ONNX_TYPES
from farm.core.models.variant import MOST_DIMENSIONS, MOST_INPUTS, OPEN, UNNAMED, TensorSpec, input_spec

#: TensorFlow Lite's TensorType.
_TFLITE_TYPES: Mapping[int, str] = dict(
    enumerate(
        (
            *("float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64"),
            *("int8", "float64", "complex128", "uint64", "resource", "variant", "uint32", "uint16"),
            *("int4", "bfloat16"),
        )
    )
)
#: ExecuTorch's ScalarType.
_EXECUTORCH_TYPES: Mapping[int, str] = {
    **dict(enumerate(("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))),
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}


def tflite_inputs(content: memoryview) -> tuple[TensorSpec, ...]:
    """Return the inputs of the first subgraph, which the tools run.

    Raises:
        ValueError: they cannot be read.
    """
    subgraphs = root_table(content).items(2)
    if not subgraphs:
        raise MalformedTable("it has no subgraph")
    subgraph = table_at(content, subgraphs[0])
    tensors = subgraph.items(0)
    return tuple(
        _tflite_tensor(table_at(content, _item(tensors, index)))
        for index in subgraph.numbers(1, I32, MOST_INPUTS)
    )


def _tflite_tensor(tensor: Table) -> TensorSpec:
    shape = tensor.numbers(0, I32, MOST_DIMENSIONS)
    # -1 where the size may be any; `shape` has a size there that is used where none is given.
    signature = tensor.numbers(7, I32, MOST_DIMENSIONS)
    open_shape = signature if len(signature) == len(shape) else shape
    return input_spec(
        tensor.text(3),
        [OPEN if size < 0 else size for size in open_shape],
        _TFLITE_TYPES.get(tensor.number(1, I8)),
        free=[UNNAMED if size < 0 else "" for size in open_shape],
    )


def ort_graph(content: memoryview) -> Table:
    """Return the graph of a model of ONNX Runtime's own format.

    Raises:
        MalformedTable: it has none.
    """
    model = root_table(content).table(1)
    graph = None if model is None else model.table(7)
    if graph is None:
        raise MalformedTable("it has no graph")
    return graph


def ort_inputs(content: memoryview) -> tuple[TensorSpec, ...]:
    """Return the inputs of the graph without those that the file gives a value.

    Raises:
        ValueError: they cannot be read.
    """
    graph = ort_graph(content)
    listed = graph.items(5)
    if len(listed) > MOST_INPUTS:
        raise MalformedTable(f"it has {len(listed)} inputs, at most {MOST_INPUTS} are read")
    names = [text_at(content, place) for place in listed]
    initialized = {name for name, _ in _named_tables(graph, 0, set(names))}
    arguments = dict(_named_tables(graph, 1, set(names)))
    return tuple(_ort_input(name, arguments.get(name)) for name in names if name not in initialized)


def _named_tables(graph: Table, field: int, names: set[str]) -> Iterator[tuple[str, Table]]:
    for place in graph.items(field):
        table = table_at(graph.content, place)
        if (name := table.text(0)) in names:
            yield name, table


_TENSOR_TYPE = 1
_SIZE, _SYMBOL = 1, 2


def _ort_input(name: str, argument: Table | None) -> TensorSpec:
    called = f"its input {name}"
    dimensions = ort_dimensions(argument, called)
    return input_spec(
        name,
        [size for size, _ in dimensions],
        ONNX_TYPES.get(_ort_tensor(argument, called).number(0, I32)),
        free=[symbol for _, symbol in dimensions],
    )


def ort_dimensions(value: Table | None, called: str) -> list[tuple[int, str]]:
    """Return size and name of each dimension of a value of ONNX Runtime's own format.

    Args:
        value: an input, an output or another value of the graph; None where it has none of the name.
        called: the value in errors.

    Raises:
        MalformedTable: it is not a tensor, states no shape, or one that no tensor has.
    """
    shape = _ort_tensor(value, called).table(1)
    if shape is None:
        raise MalformedTable(f"{called} has no shape")
    places = shape.items(0)
    if len(places) > MOST_DIMENSIONS:
        raise MalformedTable(f"{called} has {len(places)} dimensions")
    return [_ort_dimension(table_at(shape.content, place).table(0)) for place in places]


def _ort_tensor(value: Table | None, called: str) -> Table:
    kind = None if value is None else value.table(2)
    if kind is None or kind.number(1, U8) != _TENSOR_TYPE or (tensor := kind.table(2)) is None:
        raise MalformedTable(f"{called} is no tensor")
    return tensor


def _ort_dimension(value: Table | None) -> tuple[int, str]:
    kind = 0 if value is None else value.number(0, I8)
    if value is not None and kind == _SIZE:
        return value.number(1, I64), ""
    return OPEN, (value.text(2) if value is not None and kind == _SYMBOL else "") or UNNAMED


#: The kind of a program's value that is a tensor.
TENSOR_VALUE = 5


def executorch_inputs(content: memoryview) -> tuple[TensorSpec, ...]:
    """Return the inputs of the method that runners take by default: `forward`, else the first one.

    Raises:
        ValueError: they cannot be read.
    """
    plans = root_table(content).items(1)
    if not 0 < len(plans) <= MOST_INPUTS:
        raise MalformedTable(f"it has {len(plans)} methods")
    methods = [table_at(content, place) for place in plans]
    method = default_method(methods)
    values = method.items(2)
    return tuple(
        _executorch_input(table_at(content, _item(values, index)), number)
        for number, index in enumerate(method.numbers(3, I32, MOST_INPUTS))
    )


def default_method(methods: Sequence[Table]) -> Table:
    """Return the one of a program's methods that runners take by default: `forward`, else the first."""
    return next((method for method in methods if method.text(0) == "forward"), methods[0])


def _executorch_input(value: Table, number: int) -> TensorSpec:
    tensor = value.table(1)
    if value.number(0, U8) != TENSOR_VALUE or tensor is None:
        raise MalformedTable(f"its input {number} is no tensor")
    sizes = tensor.numbers(2, I32, MOST_DIMENSIONS)
    # Of a dynamic one the sizes are upper bounds, and runners use them.
    is_dynamic = tensor.number(8, I8) != 0
    return input_spec(
        "",
        sizes,
        _EXECUTORCH_TYPES.get(tensor.number(0, I8)),
        free=[UNNAMED if is_dynamic else ""] * len(sizes),
    )


def _item(places: range, index: int) -> int:
    if not 0 <= index < len(places):
        raise MalformedTable(f"there is no item {index}, the list has {len(places)}")
    return places[index]
