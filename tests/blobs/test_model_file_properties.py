"""Whatever bytes a file has, looking into it answers with a format or says why not."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.blobs.inspection import check_model_file
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
