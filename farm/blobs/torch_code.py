"""Features of the code in a torch file; nothing in it is run."""

import mmap
import zipfile
from pathlib import Path
from typing import assert_never

from farm.core.models.variant import Format

#: The method that torch.utils.bundled_inputs adds; its name stands in the code, and in mobile bytecode.
_METHOD = b"get_all_bundled_inputs"
#: The converter for NNAPI replaces the network by it (torch/backends/_nnapi/prepare.py).
_NNAPI_CLASS = b"torch.classes._nnapi.Compilation"
#: Code of the largest networks is a few hundred kB; a record that claims more is not read.
_MOST_CODE_BYTES = 16 * 1024 * 1024


def has_bundled_inputs(path: Path, format: Format) -> bool:
    """Return whether a checked file has bundled inputs; only torch files can."""
    return _names(path, format, _METHOD)


def is_converted_for_nnapi(path: Path, format: Format) -> bool:
    """Return whether a checked torch file hands its network to NNAPI, whatever runs it."""
    return _names(path, format, _NNAPI_CLASS)


def _names(path: Path, format: Format, word: bytes) -> bool:
    match format:
        case Format.TORCHSCRIPT | Format.LITE:
            return _in_code(path, word)
        case Format.FLATBUFFER:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(word) >= 0
        case Format.TFLITE | Format.ONNX | Format.ORT | Format.EXECUTORCH | Format.NCNN | Format.MNN:
            return False
        case _:
            assert_never(format)


def _in_code(path: Path, word: bytes) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(
            word in archive.read(record)
            for record in archive.infolist()
            if "/code/" in record.filename and record.file_size <= _MOST_CODE_BYTES
        )
