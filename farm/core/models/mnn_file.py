"""Telling a model of MNN from its content: a flatbuffer without an identifier.

Of the root table `Net` (MNN.fbs) two fields are looked at, a model without which cannot be: the list of
operators, and the names of tensors, which must be texts.
"""

import struct

_OPERATORS, _TENSOR_NAMES = 3, 7
#: Offsets of fields stand behind the vtable's own two sizes.
_FIRST_FIELD, _FIELD_BYTES = 4, 2
_MOST_FIELDS = 24
_U32, _I32, _U16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


def is_mnn(content: memoryview) -> bool:
    """Tell whether the content is a complete MNN model."""
    try:
        (table,) = _U32.unpack_from(content, 0)
        vtable = table - _I32.unpack_from(content, table)[0]
        if vtable < 4 or not _FIRST_FIELD <= _U16.unpack_from(content, vtable)[0] <= _bytes(_MOST_FIELDS):
            return False
        operators = _vector(content, table, vtable, _OPERATORS)
        names = _vector(content, table, vtable, _TENSOR_NAMES)
        return operators is not None and names is not None and _is_text(content, names[0])
    except struct.error:
        return False


def _bytes(fields: int) -> int:
    return _FIRST_FIELD + _FIELD_BYTES * fields


def _vector(content: memoryview, table: int, vtable: int, field: int) -> tuple[int, int] | None:
    """Return the offset of a field's vector and its length; None where it has none."""
    at = _bytes(field)
    if at + _FIELD_BYTES > _U16.unpack_from(content, vtable)[0]:
        return None
    (offset,) = _U16.unpack_from(content, vtable + at)
    if offset == 0:
        return None
    start = table + offset + _U32.unpack_from(content, table + offset)[0]
    (count,) = _U32.unpack_from(content, start)
    is_inside = count > 0 and start + 4 + 4 * count <= len(content)
    return (start + 4, count) if is_inside else None


def _is_text(content: memoryview, at: int) -> bool:
    start = at + _U32.unpack_from(content, at)[0]
    (length,) = _U32.unpack_from(content, start)
    if start + 4 + length > len(content) or length > 10_000:
        return False
    return bytes(content[start + 4 : start + 4 + length]).isascii()
