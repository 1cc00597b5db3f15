"""Flatbuffers without their schema's code: tables by the number of a field (flatbuffers, internals.md)."""

import struct
from dataclasses import dataclass

#: Kinds of numbers that fields and vectors hold.
I8, U8 = struct.Struct("<b"), struct.Struct("<B")
U16, I32, U32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")
I64, U64 = struct.Struct("<q"), struct.Struct("<Q")
#: Offsets of fields stand behind the vtable's own two sizes.
_FIRST_FIELD, _FIELD_BYTES, _OFFSET_BYTES = 4, 2, 4
#: Of a name; longer texts are not read.
_LONGEST_TEXT = 500


class MalformedTable(ValueError):
    """The bytes are not the flatbuffer that they should be."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a flatbuffer; what is read of it lies inside the content.

    Every method raises MalformedTable where that is not so.
    """

    content: memoryview
    at: int
    #: Where its vtable begins, and how many bytes that has.
    vtable: int
    vtable_bytes: int

    def number(self, field: int, kind: struct.Struct, default: int = 0) -> int:
        """Return the number in a field, or its default where the table has none."""
        place = self._place(field)
        return default if place is None else number_at(self.content, place, kind)

    def text(self, field: int) -> str:
        """Return the text in a field; empty where the table has none."""
        place = self._place(field)
        return "" if place is None else text_at(self.content, place)

    def table(self, field: int) -> "Table | None":
        """Return the table in a field; None where the table has none."""
        place = self._place(field)
        return None if place is None else table_at(self.content, place)

    def items(self, field: int, item_bytes: int = _OFFSET_BYTES) -> range:
        """Return where the items of a field's vector lie; empty where the table has none.

        Items are numbers, or the offsets of texts and tables.
        """
        place = self._place(field)
        if place is None:
            return range(0)
        start = place + number_at(self.content, place, U32)
        first = start + _OFFSET_BYTES
        end = first + number_at(self.content, start, U32) * item_bytes
        if end > len(self.content):
            raise MalformedTable(f"byte {start}: a vector ends at {end}, after the file")
        return range(first, end, item_bytes)

    def numbers(self, field: int, kind: struct.Struct, most: int) -> tuple[int, ...]:
        """Return the numbers of a field's vector, which has at most so many."""
        places = self.items(field, kind.size)
        if len(places) > most:
            raise MalformedTable(f"a list has {len(places)} numbers, at most {most} are read")
        return tuple(number_at(self.content, place, kind) for place in places)

    def _place(self, field: int) -> int | None:
        slot = _FIRST_FIELD + _FIELD_BYTES * field
        if slot + _FIELD_BYTES > self.vtable_bytes:
            return None
        offset = number_at(self.content, self.vtable + slot, U16)
        return self.at + offset if offset else None


def root_table(content: memoryview) -> Table:
    """Return the outermost table.

    Raises:
        MalformedTable: it lies outside of the content.
    """
    return table_at(content, 0)


def table_at(content: memoryview, place: int) -> Table:
    """Return the table whose offset stands at a place; it and its vtable lie inside the content.

    Raises:
        MalformedTable: they do not.
    """
    at = place + number_at(content, place, U32)
    vtable = at - number_at(content, at, I32)
    vtable_bytes, table_bytes = (number_at(content, vtable + offset, U16) for offset in (0, 2))
    if max(vtable + vtable_bytes, at + table_bytes) > len(content):
        raise MalformedTable(f"byte {at}: a table ends after the file")
    return Table(content, at, vtable, vtable_bytes)


def text_at(content: memoryview, place: int) -> str:
    """Return the text whose offset stands at a place.

    Raises:
        MalformedTable: it lies outside of the content, is no UTF-8, or is longer than any name.
    """
    start = place + number_at(content, place, U32)
    length = number_at(content, start, U32)
    first = start + _OFFSET_BYTES
    if length > _LONGEST_TEXT or first + length > len(content):
        raise MalformedTable(f"byte {start}: a name of {length} bytes")
    try:
        return bytes(content[first : first + length]).decode()
    except UnicodeDecodeError as error:
        raise MalformedTable(f"byte {start}: a name is no text") from error


def number_at(content: memoryview, place: int, kind: struct.Struct) -> int:
    """Return the number at a place.

    Raises:
        MalformedTable: it lies outside of the content.
    """
    if not 0 <= place <= len(content) - kind.size:
        raise MalformedTable(f"byte {place}: there is nothing, the file has {len(content)} bytes")
    value: int = kind.unpack_from(content, place)[0]
    return value
