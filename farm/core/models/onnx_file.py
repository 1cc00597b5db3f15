"""ONNX files, read by walking their messages past the weights (onnx.proto, IR versions 3 to 13).

The wire format of protobuf is read field by field without copying (protobuf.dev, encoding).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from farm.core.errors import VariantInvalid

_LONGEST_VARINT = 10
_FIXED_BYTES = {1: 8, 5: 4}


class WireType(IntEnum):
    """The encoding of a field's value; groups (3 and 4) are obsolete."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


_KNOWN_WIRE_TYPES = frozenset(WireType)


class MalformedMessage(Exception):
    """The bytes are not a protobuf message."""


class TruncatedMessage(MalformedMessage):
    """They could be one, if they went on."""


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """One field of a message; `value` is a varint's number, or where in the content the bytes lie."""

    number: int
    wire: WireType
    value: int | range


def protobuf_fields(content: memoryview, where: range) -> Iterator[ProtobufField]:
    """Yield the fields of the message at `where`, in order.

    Raises:
        Malformed: at the first field that is none.
        TruncatedMessage: at a field that goes on after the end.
    """
    at = where.start
    while at < where.stop:
        key, at = _varint(content, at, where.stop)
        number, kind = key >> 3, key & 7
        if number == 0 or kind not in _KNOWN_WIRE_TYPES:
            raise MalformedMessage(f"byte {at}: no field starts here")
        wire = WireType(kind)
        value: int | range
        if wire is WireType.VARINT:
            value, at = _varint(content, at, where.stop)
        else:
            size, at = (
                _varint(content, at, where.stop) if wire is WireType.BYTES else (_FIXED_BYTES[wire], at)
            )
            value = range(at, at + size)
            at += size
        if at > where.stop:
            raise TruncatedMessage(f"byte {at}: a field ends after its message, at {where.stop}")
        yield ProtobufField(number, wire, value)


def _varint(content: memoryview, at: int, stop: int) -> tuple[int, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= stop:
            raise TruncatedMessage(f"byte {at}: a number goes on after its message")
        byte = content[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise MalformedMessage(f"byte {at}: a number has more than {_LONGEST_VARINT} bytes")


#: ModelProto: ir_version, producer_name, producer_version, domain, model_version, doc_string, graph,
#: opset_import, metadata_props, training_info, functions.
_WIRE_OF_MODEL: Mapping[int, WireType] = {
    **dict.fromkeys((1, 5), WireType.VARINT),
    **dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25), WireType.BYTES),
}
_IR_VERSION, _GRAPH, _OPSET_IMPORT = 1, 7, 8
#: Fields of each message that lead to tensors.
_PARTS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "function": {7: "node"},
    "training": {1: "graph", 2: "graph"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
}
_TENSOR_EXTERNAL_DATA, _TENSOR_DATA_LOCATION, _EXTERNAL = 13, 14, 1
#: A large network has some 100 000 messages; this many take about a second.
_MOST_MESSAGES = 500_000


@dataclass(frozen=True, slots=True)
class _Message:
    kind: str
    where: range


def is_onnx(content: memoryview) -> bool:
    """Tell whether the content is one whole ONNX model, from the fields of its outermost message.

    Raises:
        VariantInvalid: it starts as one, and its end is missing.
    """
    seen: set[int] = set()
    try:
        for field in protobuf_fields(content, range(len(content))):
            if field.wire is not _WIRE_OF_MODEL.get(field.number, field.wire):
                return False
            seen.add(field.number)
    except TruncatedMessage:
        if _IR_VERSION in seen and seen <= _WIRE_OF_MODEL.keys():
            raise VariantInvalid(
                f"not a whole model file: it starts as onnx, and {len(content)} bytes are not all of it",
                hint="it was cut short or damaged on its way: copy it again",
            ) from None
        return False
    except MalformedMessage:
        return False
    return {_IR_VERSION, _GRAPH, _OPSET_IMPORT} <= seen


def check_weights_inside(content: memoryview) -> None:
    """Refuse an ONNX model whose weights are in another file.

    Raises:
        VariantInvalid: they are, or its messages cannot be read.
    """
    try:
        for message in _messages(content):
            fields = protobuf_fields(content, message.where)
            if message.kind == "tensor" and any(map(_is_external, fields)):
                raise VariantInvalid(
                    "its weights are in another file (external data)",
                    hint="pushing only the .onnx loses the weights: export with external_data=False,"
                    " or load and save it with onnx.save(model, path)",
                )
    except MalformedMessage as error:
        raise VariantInvalid(f"not a whole ONNX model: {error}") from error


def _messages(content: memoryview) -> Iterator[_Message]:
    """Yield the model and every message inside it that is or leads to a tensor."""
    waiting = [_Message("model", range(len(content)))]
    count = 0
    while waiting:
        message = waiting.pop()
        yield message
        parts = _PARTS.get(message.kind, {})
        waiting += [
            _Message(parts[field.number], field.value)
            for field in (protobuf_fields(content, message.where) if parts else ())
            if field.number in parts and isinstance(field.value, range)
        ]
        count += 1
        if count + len(waiting) > _MOST_MESSAGES:
            raise MalformedMessage(f"more than {_MOST_MESSAGES} messages")


def _is_external(field: ProtobufField) -> bool:
    located = field.number == _TENSOR_DATA_LOCATION and field.value == _EXTERNAL
    return located or field.number == _TENSOR_EXTERNAL_DATA
