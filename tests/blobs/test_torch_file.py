"""What a torch file's code says of how phones run it."""

import zipfile
from pathlib import Path

import pytest

from farm.blobs.torch_file import torch_code
from farm.core.models.variant import Format


def archive(path: Path, code: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("net/data.pkl", b"torch.conv2d prepacked")
        file.writestr("net/code/__torch__.py", code)
    return path


@pytest.mark.parametrize(
    ("code", "optimized"),
    [
        ("x = torch.conv2d(x, w, b)", False),
        ("x = torch.linear(x, w, b)", False),
        ("x = ops.prepacked.conv2d_clamp_run(x, CONSTANTS.c0)", True),
        ("x = ops.quantized.conv2d(x, CONSTANTS.c0, 0.1, 0)", None),
        ("x = torch.add(x, 1)", None),
    ],
)
def test_only_packed_weights_of_floating_point_are_optimized(
    tmp_path: Path, code: str, optimized: bool | None
) -> None:
    for file_format in (Format.TORCHSCRIPT, Format.LITE):
        assert torch_code(archive(tmp_path / "net.pt", code), file_format).mobile_optimized is optimized
    flatbuffer = tmp_path / "net.ff"
    flatbuffer.write_bytes(b"\x0c\0\0\0PTMF" + code.encode())
    assert torch_code(flatbuffer, Format.FLATBUFFER).mobile_optimized is optimized


def test_other_files_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(b"\x1c\0\0\0TFL3 conv2d")
    assert torch_code(path, Format.TFLITE).mobile_optimized is None
