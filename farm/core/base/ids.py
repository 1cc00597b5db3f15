"""Identifiers: ids of rows (each a type of its own), digests of artifacts, idempotency keys of requests."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from farm.core.errors import InvalidInput

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
#: The IETF draft of `Idempotency-Key` has a structured field's string (RFC 9651), here without escapes; bare,
#: too, for most clients leave the quotes out.
_QUOTED = re.compile(r'"([\x21\x23-\x5b\x5d-\x7e]{1,128})"')
_BARE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")


def is_digest(text: str) -> bool:
    """Tell whether `text` is spelled like a digest."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(data: bytes) -> Digest:
    """Return the SHA-256 digest of `data`."""
    return Digest(hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """Under which key something was submitted. Invariant: the same digest is the same request."""

    key: str
    #: SHA-256 of the call and its body.
    digest: str


def header_key(header: str) -> str:
    """Parse the key of a header, with or without quotes.

    Raises:
        InvalidInput: it is none.
    """
    if quoted := _QUOTED.fullmatch(header):
        return quoted[1]
    if _BARE.fullmatch(header):
        return header
    raise InvalidInput(
        "Idempotency-Key is no key",
        hint='1 to 128 visible ASCII characters but " and \\, in quotes or without: a UUID is a good one',
    )


def idempotency_key(header: str | None, call: str, body: Mapping[str, object]) -> IdempotencyKey | None:
    """Return the key of a request with the digest of its content; None without a key.

    Raises:
        InvalidInput: what is header is no key.
    """
    if header is None:
        return None
    text = json.dumps([call, body], sort_keys=True, separators=(",", ":"))
    return IdempotencyKey(key=header_key(header), digest=hashlib.sha256(text.encode()).hexdigest())
