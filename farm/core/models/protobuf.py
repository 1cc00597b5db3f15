"""The wire format of protobuf, read field by field without copying (protobuf.dev, encoding)."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

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
