"""Inspection of model and program files before the farm accepts them; nothing in them is run."""

import errno
import io
import lzma
import mmap
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from farm.core.base.units import size_text
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models.contents.counted import file_contents
from farm.core.models.declared_inputs import InputsContradict, completed_inputs
from farm.core.models.file_format import (
    HEAD_BYTES,
    archive_format,
    find_unsupported_file,
    flatbuffer_format,
    is_mnn,
    is_ncnn,
    looks_like_text,
)
from farm.core.models.inputs.file_inputs import file_inputs
from farm.core.models.llm.gguf import MAGIC, gguf_parameters
from farm.core.models.llm.litertlm import LITERTLM_MAGIC, litertlm_sections
from farm.core.models.onnx_file import check_weights_inside, is_onnx
from farm.core.models.variant import TORCH_FORMATS, Format, Manifest, variant_name
from farm.core.programs.binary_inspection import FileInspection, inspect_file

_FORMATS = (
    "TorchScript, lite, torch's flatbuffer, TensorFlow Lite, ONNX, ORT, ExecuTorch, ncnn, MNN, GGUF and"
    " LiteRT-LM files are known"
)
#: The method that torch.utils.bundled_inputs adds; its name stands in the code, and in mobile bytecode.
_METHOD = b"get_all_bundled_inputs"
#: The converter for NNAPI replaces the network by it (torch/backends/_nnapi/prepare.py).
_NNAPI_CLASS = b"torch.classes._nnapi.Compilation"
#: Code of the largest networks is a few hundred kB.
_MOST_CODE_BYTES = 16 * 1024 * 1024
#: The list of records of an archive: fifty bytes each and its name. Networks have a few thousand.
_MOST_LIST_BYTES = 2 * 1024 * 1024
#: What zipfile and the decompressors behind it raise for a damaged archive: its list, or a record.
_DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
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
        return archive_format(_record_names(path))
    if (unsupported := find_unsupported_file(head)) is not None:
        raise VariantInvalid(f"not a model file: it is {unsupported.what}", hint=unsupported.hint)
    if head.startswith(MAGIC):
        gguf_parameters(content)
        return Format.GGUF
    if head.startswith(LITERTLM_MAGIC):
        litertlm_sections(content)
        return Format.LITERTLM
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


class _ArchiveFile(io.BufferedReader):
    """A file of which at most so much is read at once: zipfile reads the whole list of records in one go.

    A place that no file can have is the archive's fault, not the disk's.
    """

    def seek(self, target: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return super().seek(target, whence)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise zipfile.BadZipFile("a record begins outside of the file") from error

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(_MOST_LIST_BYTES + 1 if size is None or size < 0 else size)
        if len(content) > _MOST_LIST_BYTES:
            raise zipfile.BadZipFile("the list of its records is too long")
        return content


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose list of records is of a bounded size.

    Raises:
        VariantInvalid: the archive is damaged, or not one of a model.
    """
    try:
        with _ArchiveFile(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except (OSError, *_DAMAGED) as error:
        # bz2 says of damaged data what others say of a disk, without its number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        size = size_text(path.stat().st_size)
        raise VariantInvalid(
            f"not a model file: it starts as a zip archive, but is damaged or cut short ({size}): {error}",
            hint="TorchScript and lite files are zip archives; was it copied or downloaded to its end?",
        ) from error


def _record_names(path: Path) -> list[str]:
    with _archive(path) as archive:
        return archive.namelist()


def _code_has(path: Path, word: bytes) -> bool:
    """Return whether a word stands in the code of an archive.

    Raises:
        VariantInvalid: there is more code than a network has, or a record is damaged.
    """
    with _archive(path) as archive:
        records = [record for record in archive.infolist() if "/code/" in record.filename]
        if sum(record.file_size for record in records) > _MOST_CODE_BYTES:
            raise VariantInvalid(
                f"not a model file: it has more than {size_text(_MOST_CODE_BYTES)} of code",
                hint="the code of the largest networks is less than 1 MB",
            )
        return any(word in archive.read(record) for record in records)


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


def with_stated_inputs(path: Path, manifest: Manifest) -> Manifest:
    """Return the manifest of a checked file with the inputs that the file states and the declared sizes.

    Operators are counted in the file, and weights where the manifest does not have their number.

    Raises:
        VariantInvalid: other inputs were declared than the file has.
    """
    file_format = manifest.recipe.format
    with _mapped(path) as content:
        stated, contents = file_inputs(content, file_format), file_contents(content, file_format)
    try:
        inputs = completed_inputs(stated.inputs, manifest.inputs)
    except InputsContradict as error:
        name = variant_name(manifest.model, manifest.recipe)
        raise VariantInvalid(
            f"{name}: {error}", hint="declare the sizes that the file leaves open, or leave its inputs out"
        ) from error
    bundled = has_bundled_inputs(path, file_format) if file_format in TORCH_FORMATS else None
    return replace(
        manifest,
        inputs=inputs,
        inputs_unread=stated.unread,
        bundled_inputs=bundled,
        parameters=contents.parameters if manifest.parameters is None else manifest.parameters,
        operators=contents.operators,
    )


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """Map a file that is not empty into memory."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):
        yield content


def has_bundled_inputs(path: Path, format: Format) -> bool:
    """Return whether a checked file has bundled inputs; only torch files can."""
    return _names(path, format, _METHOD)


def is_converted_for_nnapi(path: Path, format: Format) -> bool:
    """Return whether a checked torch file hands its network to NNAPI, whatever runs it."""
    return _names(path, format, _NNAPI_CLASS)


def _names(path: Path, format: Format, word: bytes) -> bool:
    match format:
        case Format.TORCHSCRIPT | Format.LITE:
            return _code_has(path, word)
        case Format.FLATBUFFER:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(word) >= 0
        case (
            Format.TFLITE
            | Format.ONNX
            | Format.ORT
            | Format.EXECUTORCH
            | Format.NCNN
            | Format.MNN
            | Format.GGUF
            | Format.LITERTLM
        ):
            return False
        case _:
            assert_never(format)
