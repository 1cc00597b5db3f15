"""Samples as bytes: one version byte, then zlib over the zig-zag varints of the differences.

Neighbouring iterations take nearly the same time, so differences are short; an order of magnitude smaller
than JSON, and decoded by the standard library of any language. Version 1: each sample minus the one before it
(the first minus 0), mapped 0, -1, 1, -2, ... -> 0, 1, 2, 3, ..., seven bits a byte, low bits first, high bit
set on all bytes but a number's last (as in Protocol Buffers).
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

_VERSION = 1
_MAX_NS = 2**63 - 1
#: A difference of two 63-bit numbers, zig-zagged, has at most 64 bits.
_MAX_VARINT_BYTES = 10
#: Enough for six million of the longest numbers; stops a small blob from filling the memory.
_MAX_DECODED_BYTES = 64 * 1024 * 1024


def encode_samples(samples_ns: Sequence[int]) -> bytes:
    """Pack samples, in the order they ran.

    Raises:
        ValueError: a sample is negative or does not fit 63 bits.
    """
    if any(not 0 <= sample <= _MAX_NS for sample in samples_ns):
        raise ValueError("a sample is a number of nanoseconds from 0 to 2**63 - 1")
    deltas = (after - before for before, after in pairwise([0, *samples_ns]))
    packed = b"".join(_varint(_zigzag(delta)) for delta in deltas)
    return bytes([_VERSION]) + zlib.compress(packed)


def decode_samples(data: bytes) -> tuple[int, ...]:
    """Unpack the output of `encode_samples`.

    Raises:
        ValueError: the bytes are nothing that `encode` made.
    """
    if data[:1] != bytes([_VERSION]):
        raise ValueError(f"not packed samples of version {_VERSION}")
    samples = tuple(accumulate(_unzigzag(number) for number in _numbers(_inflate(data[1:]))))
    if any(not 0 <= sample <= _MAX_NS for sample in samples):
        raise ValueError("packed samples hold a number that is no time")
    return samples


def _inflate(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        packed = stream.decompress(data, _MAX_DECODED_BYTES)
    except zlib.error as error:
        raise ValueError(f"packed samples are damaged: {error}") from error
    if not stream.eof or stream.unused_data:
        raise ValueError("packed samples are cut off, too long, or followed by something else")
    return packed


def _zigzag(delta: int) -> int:
    return 2 * delta if delta >= 0 else -2 * delta - 1


def _unzigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _numbers(packed: Iterable[int]) -> Iterator[int]:
    number = length = 0
    for byte in packed:
        number |= (byte & 0x7F) << (7 * length)
        length += 1
        if byte < 0x80:
            yield number
            number = length = 0
        elif length == _MAX_VARINT_BYTES:
            raise ValueError("packed samples hold a number that is too long")
    if length:
        raise ValueError("packed samples end within a number")
