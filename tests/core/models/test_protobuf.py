"""Protobuf's wire format, and the time that hostile messages take."""

import time

import pytest

from farm.core.models.inputs.file_inputs import file_inputs
from farm.core.models.protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    MalformedMessage,
    TruncatedMessage,
    protobuf_fields,
    signed,
)
from farm.core.models.variant import Format
from tests.support.models import onnx_samples as onnx

_HOSTILE_BYTES = 256 * 1024
#: Of CPU; measured are 0.1 to 0.2 s.
_BUDGET_S = 1.5


def test_fields_are_numbers_or_where_their_bytes_lie() -> None:
    message = onnx.number(1, 300) + onnx.field(16, b"abc") + b"\x1d\0\0\0\0" + b"\x21" + bytes(8)
    assert list(protobuf_fields(message)) == [
        (1, VARINT, 300, 3),
        (16, BYTES, 6, 9),
        (3, FIXED32, 10, 14),
        (4, FIXED64, 15, 23),
    ]
    assert list(protobuf_fields(message, 3, 9)) == [(16, BYTES, 6, 9)]


@pytest.mark.parametrize("message", [b"\x08", b"\x08\x80", b"\x0a\x05ab", b"\x0d\0", b"\x80"])
def test_a_field_that_goes_on_after_the_end_is_cut_off(message: bytes) -> None:
    with pytest.raises(TruncatedMessage):
        list(protobuf_fields(message))


@pytest.mark.parametrize("message", [b"\x00\x00", b"\x0b", b"\x08" + b"\x80" * 11])
def test_what_is_no_field_is_malformed(message: bytes) -> None:
    with pytest.raises(MalformedMessage):
        list(protobuf_fields(message))


def test_a_negative_number_is_stored_as_its_complement() -> None:
    assert [signed(value) for value in (5, 2**64 - 1, 2**63)] == [5, -1, -(2**63)]


@pytest.mark.parametrize(
    "part",
    [onnx.field(5, b""), onnx.field(11, b""), onnx.field(5, onnx.field(8, b"")), onnx.number(2, 0)],
    ids=["tensors", "inputs", "names", "numbers"],
)
def test_a_file_of_the_smallest_fields_is_read_within_the_budget(part: bytes) -> None:
    content = memoryview(onnx.model(part * (_HOSTILE_BYTES // len(part))))
    began_s = time.process_time()
    file_inputs(content, Format.ONNX)
    assert time.process_time() - began_s < _BUDGET_S
