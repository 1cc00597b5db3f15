"""What the code of torch model files says of inputs, NNAPI and weights packed for phones; without torch."""

import errno
import io
import lzma
import mmap
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm.core.base.units import size_text
from farm.core.errors import VariantInvalid
from farm.core.models.variant import TORCH_FORMATS, Format

#: The method that torch.utils.bundled_inputs adds; its name stands in the code, and in mobile bytecode.
_METHOD = b"get_all_bundled_inputs"
#: The converter for NNAPI replaces the network by it (torch/backends/_nnapi/prepare.py).
_NNAPI_CLASS = b"torch.classes._nnapi.Compilation"
#: Layers of floating point, whose weights torch's mobile optimizer packs for XNNPACK, and the operators that
#: take them then (torch/csrc/jit/passes/xnnpack_rewrite.cpp). Quantized ones are packed when they are loaded.
_LAYERS = (b"conv2d", b"linear")
_PACKED, _QUANTIZED = b"prepacked", b"quantized"
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
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCode:
    """What the code of a torch file says; of other files nothing."""

    bundled_inputs: bool | None = None
    #: Whether it hands its network to NNAPI, whatever runs it.
    converted_for_nnapi: bool = False
    #: Whether its weights are packed for XNNPACK. None where that does not apply: it is quantized, was
    #: converted for NNAPI, or has neither convolutions nor linear layers.
    mobile_optimized: bool | None = None


def torch_code(path: Path, format: Format) -> TorchCode:
    """Return what the code of a checked file says, read once.

    Raises:
        VariantInvalid: there is more code than a network has, or a record is damaged.
    """
    if format not in TORCH_FORMATS:
        return TorchCode()
    words = _words(path, format, [_METHOD, _NNAPI_CLASS, *_LAYERS, _PACKED, _QUANTIZED])
    has_packed_or_layers = not words.isdisjoint([*_LAYERS, _PACKED])
    return TorchCode(
        bundled_inputs=_METHOD in words,
        converted_for_nnapi=_NNAPI_CLASS in words,
        mobile_optimized=_PACKED in words if has_packed_or_layers and _QUANTIZED not in words else None,
    )


def _words(path: Path, format: Format, words: Collection[bytes]) -> frozenset[bytes]:
    """Return which of these words the code of a torch file has. Raises like `torch_code`."""
    if format is Format.FLATBUFFER:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return frozenset(word for word in words if content.find(word) >= 0)
    with open_archive(path) as archive:
        records = [record for record in archive.infolist() if "/code/" in record.filename]
        if sum(record.file_size for record in records) > _MOST_CODE_BYTES:
            raise VariantInvalid(
                f"not a model file: it has more than {size_text(_MOST_CODE_BYTES)} of code",
                hint="the code of the largest networks is less than 1 MB",
            )
        texts = [archive.read(record) for record in records]
    return frozenset(word for word in words if any(word in text for text in texts))
