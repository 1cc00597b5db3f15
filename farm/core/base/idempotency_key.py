"""Idempotency keys: the key that a submitter chose, with a digest of what was submitted under it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm.core.errors import InvalidInput

#: The IETF draft of `Idempotency-Key` has a structured field's string (RFC 9651), here without escapes; bare,
#: too, for most clients leave the quotes out.
_QUOTED = re.compile(r'"([\x21\x23-\x5b\x5d-\x7e]{1,128})"')
_BARE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")


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
