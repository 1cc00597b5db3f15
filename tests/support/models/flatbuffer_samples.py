"""Flatbuffers of the model formats, as small as they can be, written by hand from their schemas."""

import struct
from collections.abc import Mapping, Sequence


class Item:
    """The bytes of a table, a vector or a text, whose offsets are filled in when the buffer is written."""

    def __init__(self, head: bytes, fields: Sequence[tuple[int, "Item"]] = (), *, table_at: int = 0) -> None:
        self.head, self.fields, self.table_at = head, fields, table_at


def text(value: str) -> Item:
    content = value.encode()
    return Item(_padded(struct.pack("<I", len(content)) + content + b"\0"))


def numbers(kind: str, values: Sequence[int]) -> Item:
    """A vector of numbers: `i` for 32 bits, `B` for bytes."""
    return Item(_padded(struct.pack(f"<I{len(values)}{kind}", len(values), *values)))


def vector(items: Sequence[Item]) -> Item:
    return Item(
        struct.pack("<I", len(items)) + bytes(4 * len(items)),
        [(4 + 4 * number, item) for number, item in enumerate(items)],
    )


def table(fields: Mapping[int, Item | bytes]) -> Item:
    """A table with its vtable before it; a field is a number as it is stored, or what its offset leads to."""
    count = max(fields, default=-1) + 1
    body, offsets, children = b"", [0] * count, []
    for number, value in sorted(fields.items()):
        offsets[number] = 4 + len(body)
        if isinstance(value, Item):
            children.append((number, value))
            body += bytes(4)
        else:
            body += value.ljust(8 if len(value) > 4 else 4, b"\0")
    vtable = _padded(struct.pack(f"<HH{count}H", 4 + 2 * count, 4 + len(body), *offsets))
    at = len(vtable)
    return Item(
        vtable + struct.pack("<i", at) + body,
        [(at + offsets[number], child) for number, child in children],
        table_at=at,
    )


def buffer(root: Item, identifier: bytes) -> bytes:
    content = bytearray(bytes(4) + identifier)
    _write(content, 0, root)
    return bytes(content)


def shared(count: int, item: Item) -> Item:
    """A vector of so many offsets that lead to one table."""
    places = range(4, 4 + 4 * count, 4)
    offsets = [4 + 4 * count + item.table_at - place for place in places]
    return Item(struct.pack(f"<{count + 1}I", count, *offsets) + buffer(item, b"")[4:])


def _write(content: bytearray, place: int, item: Item) -> None:
    start = len(content)
    content += item.head
    struct.pack_into("<I", content, place, start + item.table_at - place)
    for offset, child in item.fields:
        _write(content, start + offset, child)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


def number(kind: str, value: int) -> bytes:
    return struct.pack(f"<{kind}", value)


def tflite_model(
    *inputs: tuple[str, Sequence[int], int, Sequence[int]],
) -> bytes:
    """A TensorFlow Lite model of inputs alone: name, shape, type, signature of each."""
    tensors = [
        table(
            {
                0: numbers("i", shape),
                1: number("b", kind),
                3: text(name),
                **({7: numbers("i", signature)} if signature else {}),
            }
        )
        for name, shape, kind, signature in inputs
    ]
    # One that is no input, before them.
    weight = table({0: numbers("i", [3]), 3: text("weight")})
    subgraph = table({0: vector([weight, *tensors]), 1: numbers("i", range(1, len(tensors) + 1))})
    return buffer(table({0: number("I", 3), 2: vector([subgraph])}), b"TFL3")


def ort_model(
    inputs: Mapping[str, tuple[int, Sequence[int | str]]], *, initializers: Sequence[str] = ()
) -> bytes:
    """A model of ONNX Runtime's own format: by input its type and dimensions."""
    arguments = [
        table({0: text(name), 2: table({1: number("B", 1), 2: _ort_tensor(kind, dimensions)})})
        for name, (kind, dimensions) in inputs.items()
    ]
    graph = table(
        {
            0: vector([table({0: text(name)}) for name in initializers]),
            1: vector(arguments),
            5: vector([text(name) for name in inputs]),
        }
    )
    return buffer(table({1: table({7: graph})}), b"ORTM")


def _ort_tensor(kind: int, dimensions: Sequence[int | str]) -> Item:
    listed = [
        table(
            {
                0: table({0: number("b", 1), 1: number("q", size)})
                if isinstance(size, int)
                else table({0: number("b", 2 if size else 0), 2: text(size)})
            }
        )
        for size in dimensions
    ]
    return table({0: number("i", kind), 1: table({0: vector(listed)})})


def executorch_program(*inputs: tuple[int, Sequence[int], bool], method: str = "forward") -> bytes:
    """A program of ExecuTorch of inputs alone: type, sizes, and whether they are only upper bounds."""
    values = [
        table(
            {
                0: number("B", 5),
                1: table({0: number("b", kind), 2: numbers("i", sizes), 8: number("b", int(is_dynamic))}),
            }
        )
        for kind, sizes, is_dynamic in inputs
    ]
    other = table({0: text("other"), 3: numbers("i", [])})
    plan = table({0: text(method), 2: vector(values), 3: numbers("i", range(len(values)))})
    return buffer(table({1: vector([other, plan])}), b"ET12")
