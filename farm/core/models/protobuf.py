"""The wire format of protobuf, read field by field without copying (protobuf.dev, encoding)."""

from collections.abc import Iterator

#: Encodings of a field's value; groups (3 and 4) are obsolete.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10

#: The number of a field, its encoding, and its value: a varint and the end of the field, or where the bytes
#: begin and end. A tuple of numbers: a hostile file has a field every two bytes.
ProtobufField = tuple[int, int, int, int]


class MalformedMessage(ValueError):
    """The bytes are not a protobuf message."""


class TruncatedMessage(MalformedMessage):
    """They could be one, if they went on."""


def protobuf_fields(
    content: bytes | memoryview, start: int = 0, stop: int | None = None
) -> Iterator[ProtobufField]:
    """Yield the fields of the message between two places, in order.

    Raises:
        MalformedMessage: at the first field that is none.
        TruncatedMessage: at a field that goes on after the end.
    """
    at, end = start, len(content) if stop is None else stop
    while at < end:
        key = content[at]
        if key < 0x80:
            at += 1
        else:
            key, at = _varint(content, at, end)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise MalformedMessage(f"byte {at}: no field starts here")
        if wire == VARINT:
            value, at = _varint(content, at, end)
            yield number, wire, value, at
            continue
        if wire == BYTES:
            size, at = _varint(content, at, end)
        elif wire in _FIXED_BYTES:
            size = _FIXED_BYTES[wire]
        else:
            raise MalformedMessage(f"byte {at}: no field starts here")
        if at + size > end:
            raise TruncatedMessage(f"byte {at + size}: a field ends after its message, at {end}")
        yield number, wire, at, at + size
        at += size


def packed_varints(content: bytes | memoryview, start: int, stop: int) -> Iterator[int]:
    """Yield the numbers of a packed field between two places.

    Raises:
        TruncatedMessage: the last one goes on after the end.
    """
    at = start
    while at < stop:
        value, at = _varint(content, at, stop)
        yield value


def _varint(content: bytes | memoryview, at: int, stop: int) -> tuple[int, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= stop:
            raise TruncatedMessage(f"byte {at}: a number goes on after its message")
        byte = content[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise MalformedMessage(f"byte {at}: a number has more than {_LONGEST_VARINT} bytes")


def signed(value: int) -> int:
    """Return a varint of an int32 or int64 field as the number that it stands for."""
    return value - 2**64 if value >= 2**63 else value
