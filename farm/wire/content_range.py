"""Byte ranges of uploads and downloads (RFC 9110, 14.2, 14.4 and 14.5).

`Content-Range` of a partial PUT was chosen over the `Upload-Offset` of the draft on resumable uploads: it is
an Internet Standard, any client can send it, and it says how long the whole is. Only the answer to HEAD, for
which there is no standard, says `Upload-Offset` as the draft does.
"""

import re
from dataclasses import dataclass

from farm.core.errors import InvalidInput

#: How much of an unfinished upload is there, in the answer to HEAD.
OFFSET_HEADER = "Upload-Offset"
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII)


_ASKED = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRange:
    """Bytes of a whole, counted from 0. Invariant: there is at least one, and none after the whole's end."""

    first: int
    last: int
    total_bytes: int

    @property
    def size_bytes(self) -> int:
        """Return the length of the range."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"bytes {self.first}-{self.last}/{self.total_bytes}"


def content_range(text: str) -> ContentRange:
    """Parse a `Content-Range` header.

    Raises:
        InvalidInput: it is no range of bytes in a whole of known length.
    """
    found = _RANGE.fullmatch(text.strip())
    first, last, total_bytes = map(int, found.groups()) if found else (0, -1, 0)
    if not first <= last < total_bytes:
        raise InvalidInput(
            f"{text[:80]!r} is no range of an upload", hint="Content-Range: bytes FIRST-LAST/LENGTH"
        )
    return ContentRange(first=first, last=last, total_bytes=total_bytes)


def is_within(text: str, size_bytes: int) -> bool:
    """Tell whether a `Range` asks for bytes that a file has.

    Raises:
        InvalidInput: it asks for several ranges, or for none; nothing here needs that.
    """
    found = _ASKED.fullmatch(text.strip())
    if found is None or (found[2] and int(found[2]) < int(found[1])):
        raise InvalidInput(
            f"{text[:80]!r} is no range of a file", hint="Range: bytes=FIRST- or bytes=FIRST-LAST"
        )
    return int(found[1]) < size_bytes if found[1] else min(int(found[3]), size_bytes) > 0
