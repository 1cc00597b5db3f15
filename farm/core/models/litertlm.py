"""LiteRT-LM files: a header that lists sections, among them models of TensorFlow Lite.

Fields are numbered as in the schemas: LiteRT-LM's `litertlm_header_schema.fbs`, tensorflow's `schema.fbs`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from farm.core.errors import VariantInvalid
from farm.core.models.flatbuffer import I8, I32, U8, U32, MalformedTable, Table, root_table, table_at
from farm.core.models.variant import MOST_DIMENSIONS

LITERTLM_MAGIC = b"LITERTLM"
_U64 = struct.Struct("<Q")
#: Three numbers of a version follow the magic; the header ends where the number at this byte says.
_VERSION_AT, _HEADER_END_AT, _HEADER_AT = 8, 24, 32
#: Newer ones may have their sections elsewhere.
_VERSION = 1
_TFLITE_MODEL = 3
#: The largest files have some ten sections, models a dozen graphs, and a graph some thousand tensors.
_MOST_SECTIONS, _MOST_GRAPHS, _MOST_TENSORS = 100, 100, 100_000
#: Types of TensorFlow Lite whose constants are weights: floats, and integers of 8, 4 and 2 bits.
_WEIGHT_TYPES = frozenset({0, 1, 3, 9, 17, 18, 19})


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file."""

    #: AnySectionDataType of the header's schema.
    kind: int
    begin: int
    end: int


def litertlm_sections(content: memoryview) -> tuple[Section, ...]:
    """Return the sections of a whole file; there is a model among them.

    Raises:
        VariantInvalid: the file is cut short or damaged, of a version that is not known, or without a model.
    """
    if len(content) < _HEADER_AT:
        raise _cut_short(content)
    version = U32.unpack_from(content, _VERSION_AT)[0]
    if version != _VERSION:
        raise VariantInvalid(
            f"not a model file: it is LiteRT-LM of version {version}, and {_VERSION} is read",
            hint="convert the model with a release of LiteRT-LM that this farm knows",
        )
    header_end = _U64.unpack_from(content, _HEADER_END_AT)[0]
    if not _HEADER_AT < header_end <= len(content):
        raise _cut_short(content)
    try:
        with content[_HEADER_AT:header_end] as header:
            sections = tuple(_sections(header))
    except MalformedTable as error:
        raise _damaged(str(error)) from error
    if any(not header_end <= section.begin <= section.end <= len(content) for section in sections):
        raise _cut_short(content)
    if not any(section.kind == _TFLITE_MODEL for section in sections):
        raise _damaged("no section with a model")
    return sections


def _sections(header: memoryview) -> Iterator[Section]:
    metadata = root_table(header).table(1)
    objects = range(0) if metadata is None else metadata.items(0)
    if len(objects) > _MOST_SECTIONS:
        raise MalformedTable(f"{len(objects)} sections")
    for place in objects:
        section = table_at(header, place)
        yield Section(section.number(3, U8), section.number(1, _U64), section.number(2, _U64))


def litertlm_parameters(content: memoryview) -> int:
    """Return how many weights the models of a whole file have; constants such as tables of sines count, too.

    Raises:
        VariantInvalid: the file is cut short or damaged.
    """
    total = 0
    for section in litertlm_sections(content):
        if section.kind == _TFLITE_MODEL:
            try:
                with content[section.begin : section.end] as model:
                    total += _constants(model)
            except MalformedTable as error:
                raise _damaged(str(error)) from error
    return total


def _constants(model: memoryview) -> int:
    root = root_table(model)
    graphs, buffers = root.items(2), root.items(4)
    if len(graphs) > _MOST_GRAPHS:
        raise MalformedTable(f"{len(graphs)} graphs")
    elements_by_buffer: dict[int, int] = {}
    # Graphs share buffers: the weights of prompt and generation are the same.
    for graph in graphs:
        tensors = table_at(model, graph).items(0)
        if len(tensors) > _MOST_TENSORS:
            raise MalformedTable(f"{len(tensors)} tensors")
        for place in tensors:
            tensor = table_at(model, place)
            buffer = tensor.number(2, U32)
            if tensor.number(1, I8) in _WEIGHT_TYPES and buffer not in elements_by_buffer:
                elements_by_buffer[buffer] = _elements(tensor)
    filled = (buffer for buffer in elements_by_buffer if _is_filled(model, buffers, buffer))
    return sum(elements_by_buffer[buffer] for buffer in filled)


def _elements(tensor: Table) -> int:
    return max(0, prod(tensor.numbers(0, I32, MOST_DIMENSIONS)))


def _is_filled(model: memoryview, buffers: range, number: int) -> bool:
    """Tell whether a buffer has content: in the table, behind it, or in a section of weights."""
    if number >= len(buffers):
        raise MalformedTable(f"buffer {number} of {len(buffers)}")
    buffer = table_at(model, buffers[number])
    return bool(buffer.items(0, 1)) or buffer.number(2, _U64) > 1


def _cut_short(content: memoryview) -> VariantInvalid:
    return VariantInvalid(
        f"not a whole model file: it starts as litertlm, and {len(content)} bytes are not all of it",
        hint="it was cut short or damaged on its way: copy it again",
    )


def _damaged(what: str) -> VariantInvalid:
    return VariantInvalid(
        f"not a whole model file: it starts as litertlm, and has {what}",
        hint="it was damaged: copy it again",
    )
