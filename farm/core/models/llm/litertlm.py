"""LiteRT-LM files: a header that lists sections, among them models of TensorFlow Lite.

Fields are numbered as in the schemas: LiteRT-LM's `litertlm_header_schema.fbs`, tensorflow's `schema.fbs`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from farm.core.errors import VariantInvalid
from farm.core.models.flatbuffer import U8, U32, MalformedTable, root_table, table_at

LITERTLM_MAGIC = b"LITERTLM"
_U64 = struct.Struct("<Q")
#: Three numbers of a version follow the magic; the header ends where the number at this byte says.
_VERSION_AT, _HEADER_END_AT, _HEADER_AT = 8, 24, 32
#: Newer ones may have their sections elsewhere.
_VERSION = 1
_TFLITE_MODEL = 3
#: The largest files have some ten.
_MOST_SECTIONS = 100


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


def litertlm_models(content: memoryview) -> Iterator[memoryview]:
    """Yield the models of a whole file, flatbuffers of TensorFlow Lite.

    Raises:
        VariantInvalid: the file is cut short or damaged.
    """
    for section in litertlm_sections(content):
        if section.kind == _TFLITE_MODEL:
            with content[section.begin : section.end] as model:
                yield model


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
