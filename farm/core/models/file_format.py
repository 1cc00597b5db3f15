"""Telling from its content what kind of model file a file is."""

import re
import struct
from collections.abc import Collection

from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format

_CHECKPOINT_HINT = (
    "this looks like a checkpoint of torch.save, which holds weights only:"
    " script the model and save that, torch.jit.script(model).save(path)"
)
_PT2_HINT = "convert it to what a runtime on phones reads: ExecuTorch's `.pte`, or ONNX"

#: File identifiers of flatbuffers stand at bytes 4 to 8; ExecuTorch counts its own up: ET12.
_FORMAT_BY_IDENTIFIER = {b"PTMF": Format.FLATBUFFER, b"TFL3": Format.TFLITE, b"ORTM": Format.ORT}
_EXECUTORCH_IDENTIFIER = re.compile(rb"ET\d\d")
_U32, _I32, _U16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


def flatbuffer_format(content: memoryview) -> Format | None:
    """Return the format of a flatbuffer model; None for an unknown identifier.

    Raises:
        VariantInvalid: the identifier is known, and its root table lies outside of the file.
    """
    identifier = bytes(content[4:8])
    if _EXECUTORCH_IDENTIFIER.fullmatch(identifier):
        found = Format.EXECUTORCH
    elif identifier in _FORMAT_BY_IDENTIFIER:
        found = _FORMAT_BY_IDENTIFIER[identifier]
    else:
        return None
    if not _has_root_table(content):
        raise VariantInvalid(
            f"not a whole model file: it starts as {found}, and {len(content)} bytes are not all of it",
            hint="it was cut short or damaged on its way: copy it again",
        )
    return found


def _has_root_table(content: memoryview) -> bool:
    """Tell whether the root table and its vtable are inside (flatbuffers, internals.md)."""
    try:
        (table,) = _U32.unpack_from(content, 0)
        (back,) = _I32.unpack_from(content, table)
        if table - back < 0:
            return False
        vtable_bytes, table_bytes = (_U16.unpack_from(content, table - back + at)[0] for at in (0, 2))
    except struct.error:
        return False
    return bool(max(table - back + vtable_bytes, table + table_bytes) <= len(content))


def archive_format(names: Collection[str]) -> Format:
    """Return the format of an archive by the names of its records.

    All records lie under one folder named after the file as it was saved. TorchScript has `code/` and
    `constants.pkl`; `bytecode.pkl` is what the lite interpreter reads (pytorch, serialization.md).

    Raises:
        VariantInvalid: the records are not those of a TorchScript archive.
    """
    if any(name.rpartition("/")[2] == "archive_format" for name in names):
        raise VariantInvalid("not a model file for phones: it is a program of torch.export", hint=_PT2_HINT)
    records = {name.partition("/")[2] for name in names}
    has_code = any(record.startswith("code/") for record in records)
    if "data.pkl" not in records:
        raise VariantInvalid(
            "not a model file: it is a zip archive of something else, without a record data.pkl",
            hint="if the model is in it, unpack it first: `unzip FILE`",
        )
    if not has_code or "constants.pkl" not in records:
        raise VariantInvalid(
            "not a model file: the archive has data.pkl but no code/ and constants.pkl",
            hint=_CHECKPOINT_HINT,
        )
    return Format.LITE if "bytecode.pkl" in records else Format.TORCHSCRIPT
