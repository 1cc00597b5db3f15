import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.samples import decode_samples, encode_samples


def packed_numbers(data: bytes) -> bytes:
    """Bytes of which only the numbers can be wrong."""
    packed = b"\x02" + data
    return packed + zlib.crc32(packed).to_bytes(4)


SAMPLES_NS = st.lists(st.integers(0, 2**63 - 1), max_size=300)


@given(SAMPLES_NS)
def test_samples_survive_the_round_trip(samples_ns: list[int]) -> None:
    assert decode_samples(encode_samples(samples_ns)) == tuple(samples_ns)


@given(st.binary(max_size=200))
def test_garbage_is_a_value_error_or_nothing(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        decode_samples(data)
    with contextlib.suppress(ValueError):
        decode_samples(packed_numbers(data))


@given(SAMPLES_NS, st.data())
def test_a_changed_byte_is_never_read_as_other_samples(samples_ns: list[int], data: st.DataObject) -> None:
    packed = bytearray(encode_samples(samples_ns))
    position = data.draw(st.integers(0, len(packed) - 1))
    packed[position] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ValueError):
        assert decode_samples(bytes(packed)) == tuple(samples_ns)


@pytest.mark.parametrize("sample", [-1, 2**63])
def test_what_is_no_time_in_nanoseconds_is_refused(sample: int) -> None:
    with pytest.raises(ValueError, match="nanoseconds"):
        encode_samples([sample])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        b"\x01" + encode_samples([1, 2, 3])[1:],
        encode_samples([1, 2, 3])[:-1],
        encode_samples([1, 2, 3]) + b"more",
        packed_numbers(b""),
        packed_numbers(b"\x00\x02"),
        packed_numbers(b"\x01\x80"),
        packed_numbers(b"\x01" + b"\xff" * 10),
        packed_numbers(b"\x01\x01"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="packed samples"):
        decode_samples(data)


def test_steady_samples_take_few_bytes() -> None:
    samples_ns = [13_000_000 + 7919 * index % 400_000 for index in range(200)]
    assert len(encode_samples(samples_ns)) < 4 * len(samples_ns)


def test_microseconds_take_no_bytes_for_the_digits_that_are_zero() -> None:
    samples_us = [13_000 + 7919 * index % 400 for index in range(200)]
    assert (
        len(encode_samples([sample * 1000 for sample in samples_us])) <= len(encode_samples(samples_us)) + 1
    )
