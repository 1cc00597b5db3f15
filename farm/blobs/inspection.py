"""Inspection of model and program files before the farm accepts them; nothing in them is run."""

import io
import mmap
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from farm.blobs.torch_file import TorchCode, open_archive, torch_code
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
from farm.core.models.further_files import check_further_files, stated_files
from farm.core.models.inputs.file_inputs import file_inputs
from farm.core.models.llm.gguf import MAGIC, gguf_parameters
from farm.core.models.llm.litertlm import LITERTLM_MAGIC, litertlm_sections
from farm.core.models.onnx_file import external_files, is_onnx
from farm.core.models.variant import Format, Manifest, variant_files, variant_name
from farm.core.programs.binary_inspection import FileInspection, inspect_file

_FORMATS = (
    "TorchScript, lite, torch's flatbuffer, TensorFlow Lite, ONNX, ORT, ExecuTorch, ncnn, MNN, GGUF and"
    " LiteRT-LM files and libraries of TVM are known"
)
_ELF = b"\x7fELF"
#: The symbol of what TVM packs into a library beside the code: bytecode and weights.
_TVM_SYMBOL = "__tvm_ffi__library_bin"


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
    if head.startswith(_ELF) and _tvm_abi(path) is not None:
        return Format.TVM
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
        external_files(content)
        return Format.ONNX
    kind = "a text" if looks_like_text(head) else "of no known kind"
    raise VariantInvalid(
        f"not a model file: it is {kind} ({len(content)} bytes, starting {head[:8].hex(' ')})", hint=_FORMATS
    )


def _record_names(path: Path) -> list[str]:
    with open_archive(path) as archive:
        return archive.namelist()


def _tvm_abi(path: Path) -> str | None:
    """Return the ABI of a library that TVM compiled for a CPU of Android; None of another ELF file."""
    look = inspect_program_file(path, (_TVM_SYMBOL,))
    if look.elf is None or look.elf.is_program or _TVM_SYMBOL not in look.flags.found:
        return None
    return look.elf.abi


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


def completed_manifest(path: Path, manifest: Manifest, code: TorchCode | None = None) -> Manifest:
    """Return the manifest of a checked file, completed by what the file shows.

    That are its inputs with the declared sizes, the ABI of a library, whether torch packed its weights and
    bundled inputs, operators, multiply-accumulates, a slow path, and the number of weights where the manifest
    has none.

    Args:
        path: of the file.
        manifest: as it was declared.
        code: of the file, where it was read before.

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
    code = code or torch_code(path, file_format)
    return replace(
        manifest,
        abi=_tvm_abi(path) if file_format is Format.TVM else None,
        inputs=inputs,
        inputs_unread=stated.unread,
        bundled_inputs=code.bundled_inputs,
        mobile_optimized=code.mobile_optimized,
        parameters=contents.parameters if manifest.parameters is None else manifest.parameters,
        operators=contents.operators,
        macs=contents.macs,
        macs_uncounted=contents.macs_uncounted,
        slow_path=contents.slow_path,
    )


def further_files_of(path: Path, format: Format) -> tuple[str, ...]:
    """Return the paths beside a checked model file at which it states that it keeps parts of itself."""
    with _mapped(path) as content:
        return stated_files(content, format)


def check_further_files_of(path: Path, manifest: Manifest) -> None:
    """Check that a checked model file has the files that it needs beside it.

    Raises:
        VariantInvalid: one is missing, or has a path that no device can have beside the model.
    """
    paths = [file.path for file in variant_files(manifest) if file.path]
    try:
        with _mapped(path) as content:
            check_further_files(content, manifest.recipe.format, paths)
    except VariantInvalid as error:
        name = variant_name(manifest.model, manifest.recipe)
        raise VariantInvalid(f"{name}: {error.message}", hint=error.hint) from error


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """Map a file that is not empty into memory."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):
        yield content
