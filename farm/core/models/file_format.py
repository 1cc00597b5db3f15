"""Telling from its content what kind of model file a file is, or what else: a download left, others make."""

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass

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
        file_format = Format.EXECUTORCH
    elif identifier in _FORMAT_BY_IDENTIFIER:
        file_format = _FORMAT_BY_IDENTIFIER[identifier]
    else:
        return None
    if not _has_root_table(content):
        raise VariantInvalid(
            f"not a whole model file: it starts as {file_format}, and {len(content)} bytes are not all of it",
            hint="it was cut short or damaged on its way: copy it again",
        )
    return file_format


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


_OPERATORS, _TENSOR_NAMES = 3, 7
#: Offsets of fields stand behind the vtable's own two sizes.
_FIRST_FIELD, _FIELD_BYTES = 4, 2
_MOST_FIELDS = 24


def is_mnn(content: memoryview) -> bool:
    """Tell whether the content is a complete MNN model: a flatbuffer without an identifier.

    Of the root table `Net` (MNN.fbs) two fields are inspected, a model without which cannot be: the list of
    operators, and the names of tensors, which must be texts.
    """
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


#: The magic number, then how many layers and blobs there are (ncnn, param-and-model-file-structure).
_BEGINNING = re.compile(rb"7767517[ \t]*\r?\n\s*[0-9]{1,7}[ \t]+[0-9]{1,7}[ \t]*\r?\n")


def is_ncnn(head: bytes) -> bool:
    """Tell whether a file with this beginning is an ncnn network as text."""
    return _BEGINNING.match(head) is not None


#: As much of a file's beginning as any sign needs: a tar archive is known by byte 257.
HEAD_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedFile:
    """The actual kind of a file that is no model, and a hint, possibly empty."""

    what: str
    hint: str


_CHECKPOINT = UnsupportedFile(
    what="a pickle, such as a checkpoint of torch.save",
    hint="it holds weights only: script the model and save that, torch.jit.script(model).save(path)",
)
_WEIGHTS = UnsupportedFile(
    what="a file of weights without the network",
    hint="export the whole model: TorchScript, ONNX, TensorFlow Lite or ExecuTorch",
)
_PACKED = UnsupportedFile(
    what="a packed archive", hint="unpack it first, and add the model file that is in it"
)
_WEB_PAGE = UnsupportedFile(
    what="a web page: the download gave a page instead of the file",
    hint="open the address in a browser, and download the file itself",
)
_LFS_POINTER = UnsupportedFile(
    what="a Git LFS pointer: the download left the file itself out",
    hint="`git lfs pull` in that repository fetches it",
)
_NCNN = UnsupportedFile(
    what="a network of ncnn in binary (.param.bin)",
    hint="benchncnn reads the text form: add the .param that `ncnn2mem` made it from",
)
_PROGRAM = UnsupportedFile(
    what="a program (ELF), not a model", hint="`farm harness add NAME --abi ABI PATH` registers programs"
)
_KERAS = UnsupportedFile(
    what="an HDF5 file, such as a Keras model", hint="convert it to TensorFlow Lite first"
)

_PATTERNS: tuple[tuple[re.Pattern[bytes], UnsupportedFile], ...] = tuple(
    (re.compile(pattern, re.DOTALL), file)
    for pattern, file in (
        (rb"(?i:(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)?<(!doctype\s+html|html|head)\b)", _WEB_PAGE),
        (rb"version https://git-lfs\.github\.com/spec/", _LFS_POINTER),
        (rb"\xdd\x85\x76\x00", _NCNN),
        (rb"\x7fELF", _PROGRAM),
        (rb"\x1f\x8b|BZh[1-9]|\xfd7zXZ\x00|7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|.{257}ustar", _PACKED),
        # A protocol-2 pickle; the first value of an old torch.save is a magic number of ten bytes.
        (rb"\x80[\x02-\x05]", _CHECKPOINT),
        (rb".{8}\{\s*\"|GGUF|ggml", _WEIGHTS),
        (rb"\x89HDF\r\n", _KERAS),
    )
)
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")


def find_unsupported_file(head: bytes) -> UnsupportedFile | None:
    """Recognize the kind of a file by its beginning; None where it is unknown."""
    return next((file for pattern, file in _PATTERNS if pattern.match(head)), None)


def looks_like_text(head: bytes) -> bool:
    """Tell whether a person could read it."""
    return _TEXT.fullmatch(head) is not None
