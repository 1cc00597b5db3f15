"""The inputs of ONNX models (onnx.proto)."""

from collections.abc import Mapping

from farm.core.models.protobuf import BYTES, VARINT, MalformedMessage, protobuf_fields, signed
from farm.core.models.variant import MOST_DIMENSIONS, MOST_INPUTS, OPEN, UNNAMED, TensorSpec, input_spec

#: TensorProto.DataType, and TensorDataType of ORT files.
ONNX_TYPES: Mapping[int, str] = dict(
    enumerate(
        (
            *("float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool"),
            *("float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16"),
            *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4"),
        ),
        start=1,
    )
)
_GRAPH = 7
_INITIALIZER, _INPUT, _SPARSE_INITIALIZER = 5, 11, 15
_LONGEST_NAME = 500
#: Where a message begins and ends.
_Part = tuple[int, int]


def onnx_inputs(content: memoryview) -> tuple[TensorSpec, ...]:
    """Return the inputs of the graph without those that the file gives a value, as older files list them.

    Raises:
        ValueError: they cannot be read.
    """
    graph = _part(content, (0, len(content)), _GRAPH)
    if graph is None:
        raise MalformedMessage("it has no graph")
    inputs: dict[str, _Part] = {}
    for number, wire, start, stop in protobuf_fields(content, *graph):
        if number == _INPUT and wire == BYTES:
            inputs[_text(content, (start, stop), 1)] = (start, stop)
            if len(inputs) > _MOST_LISTED:
                raise MalformedMessage(f"it has more than {_MOST_LISTED} inputs")
    given = _initialized(content, graph)
    needed = {name: part for name, part in inputs.items() if name not in given}
    if len(needed) > MOST_INPUTS:
        raise MalformedMessage(f"it has {len(needed)} inputs, at most {MOST_INPUTS} are read")
    return tuple(_input(content, part, name) for name, part in needed.items())


#: With the weights, which files of IR version 3 list among the inputs.
_MOST_LISTED = 20_000


def _initialized(content: memoryview, graph: _Part) -> set[str]:
    names: set[str] = set()
    for number, wire, start, stop in protobuf_fields(content, *graph):
        if wire == BYTES and number == _INITIALIZER:
            names.add(_text(content, (start, stop), 8))
        elif wire == BYTES and number == _SPARSE_INITIALIZER:
            values = _part(content, (start, stop), 1)
            if values is not None:
                names.add(_text(content, values, 8))
    return names


def _input(content: memoryview, part: _Part, name: str) -> TensorSpec:
    called = f"its input {name}"
    dimensions = value_dimensions(content, part, called)
    kind = _number(content, _tensor(content, part, called), 1)
    return input_spec(
        name,
        [size for size, _ in dimensions],
        ONNX_TYPES.get(kind),
        free=[symbol for _, symbol in dimensions],
    )


def value_name(content: memoryview, part: _Part) -> str:
    """Return the name of an input, an output or another value of a graph; raises as `value_dimensions`."""
    return _text(content, part, 1)


def value_dimensions(content: memoryview, part: _Part, called: str) -> list[tuple[int, str]]:
    """Return size and name of each dimension of an input, an output or another value of a graph.

    Args:
        content: of the file.
        part: where the value's message begins and ends.
        called: the value in errors.

    Raises:
        MalformedMessage: it is not a tensor, states no shape, or one that no tensor has.
    """
    shape = _part(content, _tensor(content, part, called), 2)
    if shape is None:
        raise MalformedMessage(f"{called} has no shape")
    dimensions = []
    for number, wire, start, stop in protobuf_fields(content, *shape):
        if number == 1 and wire == BYTES:
            dimensions.append(_dimension(content, (start, stop)))
            if len(dimensions) > MOST_DIMENSIONS:
                raise MalformedMessage(f"{called} has more than {MOST_DIMENSIONS} dimensions")
    return dimensions


def _tensor(content: memoryview, part: _Part, called: str) -> _Part:
    kind = _part(content, part, 2)
    tensor = None if kind is None else _part(content, kind, 1)
    if tensor is None:
        raise MalformedMessage(f"{called} is no tensor")
    return tensor


def _dimension(content: memoryview, part: _Part) -> tuple[int, str]:
    size, symbol = OPEN, UNNAMED
    for number, wire, value, stop in protobuf_fields(content, *part):
        if number == 1 and wire == VARINT and signed(value) >= 0:
            size, symbol = signed(value), ""
        elif number == 2 and wire == BYTES:
            size, symbol = OPEN, _decoded(content, (value, stop)) or UNNAMED
    return size, symbol


def _part(content: memoryview, message: _Part, field: int) -> _Part | None:
    """Return where a field's message lies, of a repeated one the last; None where there is none."""
    last = None
    for number, wire, start, stop in protobuf_fields(content, *message):
        if number == field and wire == BYTES:
            last = (start, stop)
    return last


def _text(content: memoryview, message: _Part, field: int) -> str:
    part = _part(content, message, field)
    return "" if part is None else _decoded(content, part)


def _decoded(content: memoryview, part: _Part) -> str:
    start, stop = part
    if stop - start > _LONGEST_NAME:
        raise MalformedMessage(f"byte {start}: a name of {stop - start} bytes")
    try:
        return bytes(content[start:stop]).decode()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"byte {start}: a name is no text") from error


def _number(content: memoryview, message: _Part, field: int) -> int:
    value = 0
    for number, wire, first, _ in protobuf_fields(content, *message):
        if number == field and wire == VARINT:
            value = first
    return value
