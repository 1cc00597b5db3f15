"""GGUF files, the format of llama.cpp, walked to the end of their tensors (ggml, docs/gguf.md)."""

import struct
from dataclasses import dataclass
from math import prod

from farm.core.errors import VariantInvalid

MAGIC = b"GGUF"
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
#: Version 1 had shorter counts, and llama.cpp reads it no more.
_VERSIONS = (2, 3)
#: Bytes of a value by the number of its type; texts and lists have their own lengths.
_VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _LIST, _ALIGNMENT_TYPE = 8, 9, 4
_ALIGNMENT_KEY, _DEFAULT_ALIGNMENT = b"general.alignment", 32
#: Elements and bytes of a block by the number of a tensor's type (ggml.h); newer types are not measured.
_BLOCK_BY_TYPE = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    30: (1, 2),
}
#: Large models have some thousands of tensors, vocabularies of 300 000 words, and 100 keys.
_MOST_TENSORS, _MOST_KEYS, _MOST_TEXTS = 100_000, 10_000, 2_000_000
_MOST_DIMENSIONS = 4


@dataclass(slots=True)
class _Cursor:
    """A place in the file; what is read lies inside."""

    content: memoryview
    at: int

    def number(self, kind: struct.Struct) -> int:
        start = self.skip(kind.size)
        value: int = kind.unpack_from(self.content, start)[0]
        return value

    def text(self) -> bytes:
        length = self.number(_U64)
        start = self.skip(length)
        return bytes(self.content[start : start + length])

    def skip(self, count: int) -> int:
        """Step over so many bytes, and return where they begin."""
        start = self.at
        if count > len(self.content) - start:
            raise VariantInvalid(
                f"not a whole model file: it starts as gguf, and {len(self.content)} bytes are not all of it",
                hint="it was cut short or damaged on its way: copy it again",
            )
        self.at += count
        return start


def gguf_parameters(content: memoryview) -> int:
    """Return how many weights a whole GGUF file has.

    Raises:
        VariantInvalid: the file is cut short, damaged, or of a version that nothing reads.
    """
    cursor = _Cursor(content, len(MAGIC))
    version = cursor.number(_U32)
    if version not in _VERSIONS:
        raise VariantInvalid(
            f"not a model file: it is GGUF of version {version}, and {' and '.join(map(str, _VERSIONS))}"
            " are read",
            hint="files of big-endian machines and of 2023 have others: convert the model again",
        )
    tensors, keys = cursor.number(_U64), cursor.number(_U64)
    if not 0 < tensors <= _MOST_TENSORS or keys > _MOST_KEYS:
        raise _damaged(f"{tensors} tensors and {keys} keys")
    alignment = _alignment(cursor, keys)
    parameters, end = _tensors(cursor, tensors)
    cursor.skip(-cursor.at % alignment)
    cursor.skip(end)
    return parameters


def _alignment(cursor: _Cursor, keys: int) -> int:
    """Step over the keys, and return the alignment of the tensors."""
    alignment = _DEFAULT_ALIGNMENT
    texts_left = _MOST_TEXTS
    for _ in range(keys):
        name, kind = cursor.text(), cursor.number(_U32)
        if name == _ALIGNMENT_KEY and kind == _ALIGNMENT_TYPE:
            alignment = cursor.number(_U32)
        else:
            texts_left -= _skip_value(cursor, kind, texts_left)
    if alignment == 0:
        raise _damaged("an alignment of 0")
    return alignment


def _skip_value(cursor: _Cursor, kind: int, most: int) -> int:
    """Step over a value, and return how many texts that were."""
    if kind != _LIST:
        return _skip_items(cursor, kind, 1, most)
    kind, count = cursor.number(_U32), cursor.number(_U64)
    return _skip_items(cursor, kind, count, most)


def _skip_items(cursor: _Cursor, kind: int, count: int, most: int) -> int:
    if kind in _VALUE_BYTES:
        cursor.skip(_VALUE_BYTES[kind] * count)
        return 0
    if kind != _TEXT:
        raise _damaged(f"a value of type {kind}")
    if count > most:
        raise _damaged(f"{count} texts")
    for _ in range(count):
        cursor.skip(cursor.number(_U64))
    return count


def _tensors(cursor: _Cursor, count: int) -> tuple[int, int]:
    """Return the number of all elements, and how many bytes of data the file has at least."""
    parameters = end = 0
    for _ in range(count):
        cursor.text()
        dimensions = cursor.number(_U32)
        if not 0 < dimensions <= _MOST_DIMENSIONS:
            raise _damaged(f"a tensor of {dimensions} dimensions")
        elements = prod(cursor.number(_U64) for _ in range(dimensions))
        block = _BLOCK_BY_TYPE.get(cursor.number(_U32))
        parameters += elements
        start = cursor.number(_U64)
        end = max(end, start + (elements // block[0] * block[1] if block else 0))
    if parameters >= 2**53:
        raise _damaged(f"{parameters} weights")
    return parameters, end


def _damaged(what: str) -> VariantInvalid:
    return VariantInvalid(
        f"not a whole model file: it starts as gguf, and has {what}", hint="it was damaged: copy it again"
    )
