"""Byte ranges of uploads and downloads (RFC 9110, 14.2, 14.4 and 14.5).

`Content-Range` of a partial PUT was chosen over the `Upload-Offset` of the draft on resumable uploads: it is
an Internet Standard, any client can send it, and it contains the length of the whole. Only the answer to
HEAD, for which there is no standard, contains `Upload-Offset` as in the draft.
"""

import re
from dataclasses import dataclass

from farm.core.errors import InvalidInput

#: Bytes received of an unfinished upload, in the answer to HEAD.
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
        InvalidInput: it is not a range of bytes in a whole of known length.
    """
    match = _RANGE.fullmatch(text.strip())
    first, last, total_bytes = map(int, match.groups()) if match else (0, -1, 0)
    if not first <= last < total_bytes:
        raise InvalidInput(
            f"{text[:80]!r} is no range of an upload", hint="Content-Range: bytes FIRST-LAST/LENGTH"
        )
    return ContentRange(first=first, last=last, total_bytes=total_bytes)


def is_within(text: str, size_bytes: int) -> bool:
    """Return whether a `Range` asks for bytes that a file has.

    Raises:
        InvalidInput: it asks for several ranges, or for none; nothing here needs that.
    """
    match = _ASKED.fullmatch(text.strip())
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise InvalidInput(
            f"{text[:80]!r} is no range of a file", hint="Range: bytes=FIRST- or bytes=FIRST-LAST"
        )
    return int(match[1]) < size_bytes if match[1] else min(int(match[3]), size_bytes) > 0
