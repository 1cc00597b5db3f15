"""Whatever bytes a file has, looking into it answers with a format or says why not."""

import random
import struct
import zipfile
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.blobs.inspection import check_model_file
from farm.blobs.torch_file import torch_code
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format
from tests.support.farm.service_fixture import model_file
from tests.support.models import onnx_samples as onnx

BEGINNINGS = st.sampled_from(
    [
        b"",
        b"PK\x03\x04",
        b"\x0c\x00\x00\x00TFL3",
        b"\xff\xff\xff\xffPTMF",
        struct.pack("<I4sHHi", 12, b"ET12", 4, 4, -(2**31)),
        b"\x80\x02",
        b"\x08\x08",
        b"\x08\x08:\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        onnx.model(),
        onnx.initializer(onnx.INSIDE),
    ]
)


def archived(format: Format) -> bytes:
    return model_file(format, marker="m")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "model"


def looked_into(path: Path) -> Format | VariantInvalid:
    try:
        return check_model_file(path)
    except VariantInvalid as error:
        return error


@given(beginning=BEGINNINGS, rest=st.binary(max_size=300))
def test_any_bytes_are_a_format_or_refused_with_a_hint(file: Path, beginning: bytes, rest: bytes) -> None:
    file.write_bytes(beginning + rest)
    answer = looked_into(file)
    if isinstance(answer, VariantInvalid):
        assert answer.message.startswith(f"{file}: ")
        assert answer.hint


def torch_archive(path: Path, *, code: bytes = b"", records: int = 0, compression: int = ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name in ("data.pkl", "constants.pkl"):
            archive.writestr(f"net/{name}", b"x")
        archive.writestr("net/code/net.py", code)
        for number in range(records):
            archive.writestr(f"net/data/{number}", b"")


@pytest.mark.parametrize("compression", [ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_a_record_that_is_damaged_is_no_error_of_the_farm(file: Path, compression: int) -> None:
    torch_archive(file, code=random.Random(1).randbytes(50_000), compression=compression)
    assert not torch_code(file, Format.TORCHSCRIPT).converted_for_nnapi
    content = bytearray(file.read_bytes())
    for place in range(20_000, 30_000):
        content[place] ^= 0x5A
    file.write_bytes(content)
    with pytest.raises(VariantInvalid, match="damaged"):
        torch_code(file, Format.TORCHSCRIPT)


def test_a_record_that_begins_before_its_file_is_no_error_of_the_disk(file: Path) -> None:
    torch_archive(file, code=b"x")
    content = bytearray(file.read_bytes())
    # The end record states where the list of records begins; by too much, records are sought before the file.
    end = content.rindex(b"PK\x05\x06") + 16
    (began_at,) = struct.unpack_from("<I", content, end)
    struct.pack_into("<I", content, end, began_at + 100_000)
    file.write_bytes(content)
    with pytest.raises(VariantInvalid, match=r"damaged.*outside of the file"):
        torch_code(file, Format.TORCHSCRIPT)


def test_more_code_than_a_network_has_is_not_read(file: Path) -> None:
    torch_archive(file, code=bytes(17 * 2**20), compression=ZIP_DEFLATED)
    assert file.stat().st_size < 10**5
    with pytest.raises(VariantInvalid, match="of code"):
        torch_code(file, Format.TORCHSCRIPT)


def test_a_list_of_records_that_no_network_has_is_not_read(file: Path) -> None:
    torch_archive(file, records=40_000)
    with pytest.raises(VariantInvalid, match="list of its records is too long"):
        check_model_file(file)


@given(
    whole=st.sampled_from([*map(archived, [Format.TORCHSCRIPT, Format.LITE]), onnx.in_a_branch(onnx.INSIDE)]),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_a_model_with_a_few_bytes_changed_is_answered_too(
    file: Path, whole: bytes, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(whole)
    for place, value in changes:
        content[-1 - place % len(content)] = value
    file.write_bytes(content)
    assert isinstance(looked_into(file), Format | VariantInvalid)


@given(st.integers(1, 40))
def test_onnx_cut_anywhere_is_never_taken(file: Path, cut: int) -> None:
    whole = onnx.model()
    file.write_bytes(whole[: max(len(whole) - cut, 1)])
    assert isinstance(looked_into(file), VariantInvalid)
