"""What the code in a file of torch tells of it; nothing of it is run."""

import mmap
import zipfile
from pathlib import Path
from typing import assert_never

from farm.core.models.variant import Format

#: The method that torch.utils.bundled_inputs adds; its name stands in the code, and in mobile bytecode.
_METHOD = b"get_all_bundled_inputs"
#: What the converter for NNAPI puts in the place of the network (torch/backends/_nnapi/prepare.py).
_NNAPI_CLASS = b"torch.classes._nnapi.Compilation"
#: Code of the largest networks is a few hundred kB; a record that claims more is not read.
_MOST_CODE_BYTES = 16 * 1024 * 1024


def has_bundled_inputs(path: Path, format: Format) -> bool:
    """Tell whether a file that was checked has bundled inputs; only files of torch can."""
    return _names(path, format, _METHOD)


def is_converted_for_nnapi(path: Path, format: Format) -> bool:
    """Tell whether a file of torch that was checked hands its network to NNAPI, whatever runs it."""
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
