"""Characters that JSON can encode and not every database stores: NUL, and halves of surrogate pairs."""

import re

#: One escape of a JSON string after the other (RFC 8259, section 7); the group cannot be stored.
#: Unescaped, neither can occur in JSON that is UTF-8.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u0000|u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|.)",
    re.DOTALL,
)
#: Without one of these there is none to look for; bodies are megabytes, and few have any.
_SIGNS = (b"\\u0000", b"\\ud", b"\\uD")


def is_storable(body: bytes) -> bool:
    """Return whether a JSON text has neither in a string."""
    if not any(sign in body for sign in _SIGNS):
        return True
    return not any(escape[1] for escape in _ESCAPE.finditer(body))


def make_storable(body: bytes) -> bytes:
    """Return a JSON text with each of them replaced by the replacement character."""
    if is_storable(body):
        return body
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], body)
