"""Inspection of model and program files before the farm accepts them; nothing in them is run."""

import io
import mmap
import struct
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import assert_never

from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.file_format import (
    HEAD_BYTES,
    archive_format,
    find_unsupported_file,
    flatbuffer_format,
    is_mnn,
    is_ncnn,
    looks_like_text,
)
from farm.core.models.onnx_file import check_weights_inside, is_onnx
from farm.core.models.variant import Format
from farm.core.programs.binary_inspection import FileInspection, inspect_file

_FORMATS = (
    "TorchScript, lite, torch's flatbuffer, TensorFlow Lite, ONNX, ORT, ExecuTorch, ncnn and MNN files"
    " are known"
)
#: The method that torch.utils.bundled_inputs adds; its name stands in the code, and in mobile bytecode.
_METHOD = b"get_all_bundled_inputs"
#: The converter for NNAPI replaces the network by it (torch/backends/_nnapi/prepare.py).
_NNAPI_CLASS = b"torch.classes._nnapi.Compilation"
#: Code of the largest networks is a few hundred kB; a record that claims more is not read.
_MOST_CODE_BYTES = 16 * 1024 * 1024


def check_model_file(path: Path, *, called: str | None = None) -> Format:
    """Return the format of a model file, from its content; its name is ignored.

    Args:
        path: where it is.
        called: its name in errors; the path by default.

    Raises:
        VariantInvalid: it cannot be read, or is not a complete model file of a known format.
    """
    name = called or str(path)
    try:
        return _inspect(path)
    except OSError as error:
        raise VariantInvalid(f"{name}: cannot be read: {error.strerror or error}") from error
    except VariantInvalid as error:
        raise VariantInvalid(f"{name}: {error.message}", hint=error.hint) from error


def _inspect(path: Path) -> Format:
    with path.open("rb") as file:
        if file.seek(0, io.SEEK_END) == 0:
            raise VariantInvalid(
                "not a model file: it is empty", hint="was it copied or downloaded to its end?"
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as content:
            return _format(content, path)


def _format(content: memoryview, path: Path) -> Format:
    """Return the format; flatbuffers first: one of TensorFlow Lite may end with a zip archive of metadata."""
    head = bytes(content[:HEAD_BYTES])
    if (flatbuffer := flatbuffer_format(content)) is not None:
        return flatbuffer
    if head.startswith(b"PK"):
        return archive_format(_record_names(path, len(content)))
    if (unsupported := find_unsupported_file(head)) is not None:
        raise VariantInvalid(f"not a model file: it is {unsupported.what}", hint=unsupported.hint)
    if is_ncnn(head):
        return Format.NCNN
    if is_mnn(content):
        return Format.MNN
    if is_onnx(content):
        check_weights_inside(content)
        return Format.ONNX
    kind = "a text" if looks_like_text(head) else "of no known kind"
    raise VariantInvalid(
        f"not a model file: it is {kind} ({len(content)} bytes, starting {head[:8].hex(' ')})", hint=_FORMATS
    )


def _record_names(path: Path, size_bytes: int) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    # The others come from a damaged list of records: its names, offsets and versions.
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error) as error:
        raise VariantInvalid(
            f"not a model file: it starts as a zip archive, but its end is missing ({size_bytes} bytes)",
            hint="TorchScript and lite files are zip archives; this one was cut short or damaged",
        ) from error


def inspect_program_file(path: Path, flags: Collection[str] = ()) -> FileInspection:
    """Return the kind of a file, its size, and which of these flags it contains.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return inspect_file(b"")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return inspect_file(content, flags)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from error


def has_bundled_inputs(path: Path, format: Format) -> bool:
    """Return whether a checked file has bundled inputs; only torch files can."""
    return _names(path, format, _METHOD)


def is_converted_for_nnapi(path: Path, format: Format) -> bool:
    """Return whether a checked torch file hands its network to NNAPI, whatever runs it."""
    return _names(path, format, _NNAPI_CLASS)


def _names(path: Path, format: Format, word: bytes) -> bool:
    match format:
        case Format.TORCHSCRIPT | Format.LITE:
            with zipfile.ZipFile(path) as archive:
                return any(
                    word in archive.read(record)
                    for record in archive.infolist()
                    if "/code/" in record.filename and record.file_size <= _MOST_CODE_BYTES
                )
        case Format.FLATBUFFER:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(word) >= 0
        case Format.TFLITE | Format.ONNX | Format.ORT | Format.EXECUTORCH | Format.NCNN | Format.MNN:
            return False
        case _:
            assert_never(format)
