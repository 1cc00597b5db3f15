"""Names for the things that are referred to; each id is its own type, so that they cannot be swapped."""

import hashlib
import re
from typing import NewType

HostId = NewType("HostId", str)
DeviceId = NewType("DeviceId", str)
SessionId = NewType("SessionId", int)
MatrixId = NewType("MatrixId", int)
CellId = NewType("CellId", int)
JobId = NewType("JobId", int)
AttemptId = NewType("AttemptId", int)
VariantId = NewType("VariantId", int)
SeriesId = NewType("SeriesId", int)
FactsId = NewType("FactsId", int)

Digest = NewType("Digest", str)
"""Lower-case hexadecimal SHA-256 of an artifact's bytes: 64 characters."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Tell whether `text` is spelled like a digest."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(data: bytes) -> Digest:
    """Return the SHA-256 digest of `data`."""
    return Digest(hashlib.sha256(data).hexdigest())
