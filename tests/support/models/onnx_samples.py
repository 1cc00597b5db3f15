"""ONNX models in their wire format, small ones, with a tensor in every place that may hold one."""

from collections.abc import Callable

Place = Callable[[bytes], bytes]


def number(field_number: int, value: int) -> bytes:
    """A varint field."""
    return _varint(field_number << 3) + _varint(value)


def field(field_number: int, *content: bytes) -> bytes:
    """A field of bytes: a text or a message."""
    joined = b"".join(content)
    return _varint(field_number << 3 | 2) + _varint(len(joined)) + joined


def _varint(value: int) -> bytes:
    parts = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(part | 0x80 for part in parts[:-1]), parts[-1]])


_DIMS_AND_TYPE = number(1, 3) + number(2, 1)
#: A tensor with its data inside; with its data in a file beside it; and one that says no more than that.
INSIDE = _DIMS_AND_TYPE + field(8, b"weight") + field(9, bytes(12))
EXTERNAL = (
    _DIMS_AND_TYPE
    + field(8, b"weight")
    + field(13, field(1, b"location") + field(2, b"m.onnx.data"))
    + number(14, 1)
)
LOCATED_ONLY = _DIMS_AND_TYPE + number(14, 1)


def model(graph: bytes = b"", functions: bytes = b"") -> bytes:
    """A model with one node, and whatever else the graph is to have."""
    node = field(1, field(1, b"x"), field(2, b"y"), field(4, b"Relu"))
    return (
        number(1, 8)
        + field(2, b"test")
        + field(7, node, field(2, b"g"), graph)
        + functions
        + field(8, number(2, 17))
    )


def initializer(tensor: bytes) -> bytes:
    return model(field(5, tensor))


def sparse_initializer(tensor: bytes) -> bytes:
    return model(field(15, field(1, tensor), number(3, 4)))


def constant(tensor: bytes) -> bytes:
    return model(_constant_node(tensor))


def in_a_branch(tensor: bytes) -> bytes:
    """Inside of a graph that is an attribute of a node."""
    branch = field(5, field(1, b"then_branch"), field(6, _constant_node(tensor)))
    return model(field(1, field(4, b"If"), branch))


def in_a_function(tensor: bytes) -> bytes:
    return model(functions=field(25, field(1, b"f"), field(7, _attribute(tensor))))


def _constant_node(tensor: bytes) -> bytes:
    return field(1, field(4, b"Constant"), _attribute(tensor))


def _attribute(tensor: bytes) -> bytes:
    return field(5, field(1, b"value"), field(5, tensor))
