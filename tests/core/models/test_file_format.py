"""Telling model files from what only looks like one."""

import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.core.errors import VariantInvalid
from farm.core.models.file_format import archive_format
from farm.core.models.onnx_file import external_files
from farm.core.models.variant import Format
from tests.support.harness.run_samples import manifest
from tests.support.models import onnx_samples as onnx
from tests.support.models.elf_samples import AARCH64, SPARC, elf_file

TORCHSCRIPT = ["m/data.pkl", "m/code/__torch__/net.py", "m/constants.pkl", "m/version"]


def archive(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"x")
    return path


def flatbuffer(identifier: bytes) -> bytes:
    """The smallest there is: an empty root table at 12, its vtable at 8."""
    return struct.pack("<I4sHHi", 12, identifier, 4, 4, 4)


def taken(path: Path, content: bytes) -> Format:
    path.write_bytes(content)
    return check_model_file(path)


def refused(path: Path, content: bytes) -> VariantInvalid:
    with pytest.raises(VariantInvalid) as caught:
        taken(path, content)
    return caught.value


def test_code_and_constants_make_torchscript() -> None:
    assert archive_format(TORCHSCRIPT) is Format.TORCHSCRIPT


def test_mobile_bytecode_makes_a_lite_file() -> None:
    assert archive_format([*TORCHSCRIPT, "m/bytecode.pkl"]) is Format.LITE


def test_a_checkpoint_is_refused_with_the_way_to_a_model() -> None:
    with pytest.raises(VariantInvalid) as caught:
        archive_format(["m/data.pkl", "m/data/0", "m/version"])
    assert "torch.jit.script" in caught.value.hint


def test_a_program_of_torch_export_is_called_that() -> None:
    with pytest.raises(VariantInvalid, match=r"torch\.export"):
        archive_format(["m/archive_format", "m/models/model.json", "m/data/weights/model.pt"])


def test_a_file_of_the_right_records_is_taken(tmp_path: Path) -> None:
    assert check_model_file(archive(tmp_path / "m.pt", TORCHSCRIPT)) is Format.TORCHSCRIPT


def test_any_other_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        VariantInvalid, match=r"photos\.zip: not a model file: it is a zip archive of something"
    ):
        check_model_file(archive(tmp_path / "photos.zip", ["photos/1.jpg"]))


@pytest.mark.parametrize(
    ("identifier", "format"),
    [
        (b"PTMF", Format.FLATBUFFER),
        (b"TFL3", Format.TFLITE),
        (b"ORTM", Format.ORT),
        (b"ET12", Format.EXECUTORCH),
    ],
)
def test_flatbuffers_are_known_by_their_identifier_whatever_they_are_called(
    tmp_path: Path, identifier: bytes, format: Format
) -> None:
    assert taken(tmp_path / "model.pt", flatbuffer(identifier)) is format


def test_a_flatbuffer_with_an_archive_of_metadata_behind_it_is_a_flatbuffer(tmp_path: Path) -> None:
    labels = archive(tmp_path / "labels.zip", ["labels.txt"]).read_bytes()
    assert taken(tmp_path / "m.tflite", flatbuffer(b"TFL3") + labels) is Format.TFLITE


@pytest.mark.parametrize("size", [8, 12, 14])
def test_a_flatbuffer_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    said = refused(tmp_path / "m.tflite", flatbuffer(b"TFL3")[:size])
    assert f"starts as tflite, and {size} bytes are not all of it" in said.message


def test_a_flatbuffer_of_someone_else_is_of_no_known_kind(tmp_path: Path) -> None:
    assert "no known kind" in refused(tmp_path / "m.bin", flatbuffer(b"ABCD")).message


def test_an_onnx_model_is_told_by_its_messages(tmp_path: Path) -> None:
    assert taken(tmp_path / "m.pt", onnx.model()) is Format.ONNX


@pytest.mark.parametrize(
    "place", [onnx.initializer, onnx.constant, onnx.sparse_initializer, onnx.in_a_branch, onnx.in_a_function]
)
def test_onnx_weights_in_another_file_are_found_wherever_they_are(tmp_path: Path, place: onnx.Place) -> None:
    assert external_files(memoryview(place(onnx.EXTERNAL))) == ("m.onnx.data",)
    assert external_files(memoryview(place(onnx.INSIDE))) == ()
    assert taken(tmp_path / "m.onnx", place(onnx.EXTERNAL)) is Format.ONNX
    said = refused(tmp_path / "m.onnx", place(onnx.LOCATED_ONLY))
    assert "does not state which" in said.message
    assert "external_data=False" in said.hint


def test_an_onnx_model_cut_short_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path / "m.onnx", onnx.model()[:-1])
    assert "starts as onnx" in said.message


def test_an_onnx_graph_that_is_no_message_is_refused(tmp_path: Path) -> None:
    assert "not a whole ONNX model" in refused(tmp_path / "m.onnx", onnx.model(graph=b"\x0a\x7f")).message


def test_another_protobuf_is_no_onnx_model(tmp_path: Path) -> None:
    graph_def = onnx.field(1, b"node") + onnx.field(4, b"versions")
    assert "no known kind" in refused(tmp_path / "frozen.pb", graph_def).message


def test_onnx_without_a_graph_is_no_model(tmp_path: Path) -> None:
    assert "no known kind" in refused(tmp_path / "m.onnx", onnx.number(1, 8) + onnx.field(8, b"")).message


def packed_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(tarfile.TarInfo("model.pt"))
    return buffer.getvalue()


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_network_of_ncnn_is_known_by_its_number_and_its_counts(tmp_path: Path, ends: bytes) -> None:
    lines = (b"7767517", b"2 2", b"Input data 0 1 data", b"ReLU relu 1 1 data out", b"")
    assert taken(tmp_path / "net.param", ends.join(lines)) is Format.NCNN


def test_a_library_of_tvm_is_known_by_its_symbol_and_states_its_abi(tmp_path: Path) -> None:
    symbol = b"\0__tvm_ffi__library_bin\0"
    library = tmp_path / "net.so"
    assert taken(library, elf_file(AARCH64, loader=None, text=symbol)) is Format.TVM
    assert completed_manifest(library, manifest(format=Format.TVM)).abi == "arm64-v8a"
    assert "a program (ELF), not a model" in refused(library, elf_file(AARCH64, loader=None)).message
    # A program that has the symbol, and a library for a CPU that no phone has.
    assert refused(library, elf_file(AARCH64, text=symbol)).message
    assert refused(library, elf_file(SPARC, loader=None, text=symbol)).message


def test_a_model_of_mnn_is_known_by_its_operators_and_its_tensors_names(tmp_path: Path) -> None:
    assert taken(tmp_path / "net.mnn", mnn_model()) is Format.MNN


@pytest.mark.parametrize("kept", range(0, 60, 4))
def test_a_model_of_mnn_that_was_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    assert refused(tmp_path / "net.mnn", mnn_model()[:kept]).message


def mnn_model() -> bytes:
    """A table of eight fields with one operator (empty here) and one tensor, `data`, and nothing else."""
    fields = [0, 0, 0, 4, 0, 0, 0, 8]
    vtable = struct.pack("<HH8H", 20, 12, *fields)
    head = struct.pack("<I", 24) + vtable
    operators, names = 36, 44
    table = struct.pack("<iII", 24 - 4, operators - 28, names - 32)
    of_operators = struct.pack("<II", 1, 0)
    of_names = struct.pack("<II", 1, 4)
    return head + table + of_operators + of_names + struct.pack("<I", 4) + b"data\0\0\0\0" + b"\0" * 16


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (b"", "it is empty", "downloaded"),
        (b"<!doctype html><html>", "a web page", "download the file itself"),
        (b"\n<!-- 404 -->\n<HTML lang=en>", "a web page", "download the file itself"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer", "git lfs pull"),
        (b"PK\x03\x04 and no end", "damaged or cut short", "downloaded to its end"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "checkpoint of torch.save", "torch.jit.script"),
        (b"\xdd\x85\x76\x00\x03\x00\x00\x00", "ncnn in binary", "text form"),
        (b"7767517\nthree\n", "a text", "are known"),
        (b"\x1f\x8b\x08\x00rest", "a packed archive", "unpack"),
        (packed_tar(), "a packed archive", "unpack"),
        (struct.pack("<Q", 40) + b'{"w":{"dtype":"F32"}}', "weights without the network", "export"),
        (b"ggml\x03\x00\x00\x00", "weights without the network", "export"),
        (b"\x7fELF\x02\x01\x01", "a program", "farm harness add"),
        (b"\x89HDF\r\n\x1a\n", "HDF5", "TensorFlow Lite"),
        (b"name: demo\nharness: x\n", "it is a text", "are known"),
        (bytes(range(128, 160)) + b"\x00", "of no known kind", "are known"),
    ],
)
def test_what_is_no_model_is_called_by_its_name(tmp_path: Path, content: bytes, said: str, hint: str) -> None:
    error = refused(tmp_path / "model.pt", content)
    assert error.message.startswith(f"{tmp_path / 'model.pt'}: not a model file: ")
    assert said in error.message
    assert hint in error.hint


def test_a_missing_file_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match="No such file"):
        check_model_file(tmp_path / "nope.pt")


def test_a_folder_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(VariantInvalid, match="Is a directory"):
        check_model_file(tmp_path)
