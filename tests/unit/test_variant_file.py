"""Telling model files from what only looks like one."""

import zipfile
from pathlib import Path

import pytest

from farm.blobs.model_file import check_model_file
from farm.core.errors import VariantInvalid
from farm.core.variant import Format
from farm.core.variant_file import format_of

TORCHSCRIPT = ["m/data.pkl", "m/code/__torch__/net.py", "m/constants.pkl", "m/version"]


def archive(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"x")
    return path


def test_code_and_constants_make_torchscript() -> None:
    assert format_of(TORCHSCRIPT) is Format.TORCHSCRIPT


def test_mobile_bytecode_makes_a_lite_file() -> None:
    assert format_of([*TORCHSCRIPT, "m/bytecode.pkl"]) is Format.LITE


def test_a_checkpoint_is_refused_with_the_way_to_a_model() -> None:
    with pytest.raises(VariantInvalid) as caught:
        format_of(["m/data.pkl", "m/data/0", "m/version"])
    assert "torch.jit.script" in caught.value.hint


def test_a_file_of_the_right_records_is_taken(tmp_path: Path) -> None:
    assert check_model_file(archive(tmp_path / "m.pt", TORCHSCRIPT)) is Format.TORCHSCRIPT


def test_any_other_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match=r"photos\.zip: not a model file"):
        check_model_file(archive(tmp_path / "photos.zip", ["photos/1.jpg"]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"<!doctype html>", "not a zip archive"),
        (b"PK\x03\x04 and no end", "its end is missing"),
        (b"\x1c\x00\x00\x00TFL3", "TensorFlow Lite"),
        (b"\x1c\x00\x00\x00PTMF", "flatbuffer"),
    ],
)
def test_what_is_no_archive_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(VariantInvalid, match=said):
        check_model_file(path)


def test_a_missing_file_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match="No such file"):
        check_model_file(tmp_path / "nope.pt")
