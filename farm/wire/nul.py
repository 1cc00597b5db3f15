"""NUL characters in JSON: PostgreSQL keeps none in text, so no database of ours is given any."""

import re

#: The one way to write it in JSON: unescaped control characters are no JSON (RFC 8259, section 7).
_ESCAPE = b"\\u0000"
#: Such an escape, unless its backslash is itself escaped.
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def has_nul(body: bytes) -> bool:
    """Whether a JSON text has a NUL character in a string."""
    return _ESCAPE in body and _NUL.search(body) is not None


def without_nul(body: bytes) -> bytes:
    """A JSON text with the replacement character for every NUL."""
    return _NUL.sub(rb"\1\\ufffd", body) if _ESCAPE in body else body
