"""Inspection of a model file before the farm accepts it; nothing in it is run."""

import io
import mmap
import struct
import zipfile
from pathlib import Path

from farm.core.errors import VariantInvalid
from farm.core.models.file_format import archive_format, flatbuffer_format
from farm.core.models.mnn_file import is_mnn
from farm.core.models.ncnn_file import is_ncnn
from farm.core.models.onnx_file import check_weights_inside, is_onnx
from farm.core.models.unsupported_file import HEAD_BYTES, find_unsupported_file, looks_like_text
from farm.core.models.variant import Format

_FORMATS = (
    "TorchScript, lite, torch's flatbuffer, TensorFlow Lite, ONNX, ORT, ExecuTorch, ncnn and MNN files"
    " are known"
)


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
    if (foreign := find_unsupported_file(head)) is not None:
        raise VariantInvalid(f"not a model file: it is {foreign.what}", hint=foreign.hint)
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
