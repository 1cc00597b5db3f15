"""Samples as bytes: version, unit and zig-zag differences in units as varints, and a checksum.

Neighbouring iterations take nearly the same time, so differences are short, and a tool that prints
microseconds leaves three digits out: an order of magnitude smaller than JSON. Not compressed, so that a
database decodes them in SQL. Version 2: a byte 2; the unit in nanoseconds, the greatest common divisor of the
samples (1 of zeros only); each sample minus the one before it (the first minus 0) in units, mapped 0, -1, 1,
-2, ... -> 0, 1, 2, 3, ...; all but the version seven bits a byte, low bits first, high bit set on all bytes
but a number's last (as in Protocol Buffers). The last four bytes are the CRC-32 of all bytes before them, the
highest first.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import gcd

_VERSION = 2
_MAX_NS = 2**63 - 1
#: A difference of two 63-bit numbers, zig-zagged, has at most 64 bits.
_MAX_VARINT_BYTES = 10
_CHECKSUM_BYTES = 4


def encode_samples(samples_ns: Sequence[int]) -> bytes:
    """Pack samples, in the order they ran.

    Raises:
        ValueError: a sample is negative or does not fit 63 bits.
    """
    if any(not 0 <= sample <= _MAX_NS for sample in samples_ns):
        raise ValueError("a sample is a number of nanoseconds from 0 to 2**63 - 1")
    unit_ns = gcd(*samples_ns) or 1
    deltas = ((after - before) // unit_ns for before, after in pairwise([0, *samples_ns]))
    packed = bytes([_VERSION]) + b"".join(map(_varint, [unit_ns, *map(_zigzag, deltas)]))
    return packed + zlib.crc32(packed).to_bytes(_CHECKSUM_BYTES)


def decode_samples(data: bytes) -> tuple[int, ...]:
    """Unpack the output of `encode_samples`.

    Raises:
        ValueError: the bytes are nothing that `encode_samples` made.
    """
    if data[:1] != bytes([_VERSION]):
        raise ValueError(f"not packed samples of version {_VERSION}")
    packed, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if checksum != zlib.crc32(packed).to_bytes(_CHECKSUM_BYTES):
        raise ValueError("packed samples are damaged or cut off")
    numbers = _numbers(packed[1:])
    unit_ns = next(numbers, 0)
    if not unit_ns:
        raise ValueError("packed samples have no unit")
    samples = tuple(accumulate(unit_ns * _unzigzag(number) for number in numbers))
    if any(not 0 <= sample <= _MAX_NS for sample in samples):
        raise ValueError("packed samples hold a number that is no time")
    return samples


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
