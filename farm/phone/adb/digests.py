"""Output of `sha256sum`."""

import re

from farm.core.base.ids import Digest
from farm.phone.adb.decoding import lines

_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def digest_by_path(text: str) -> dict[str, Digest]:
    """Return the digest of each file; other lines (errors, an echo) are dropped."""
    matches = (_LINE.fullmatch(line) for line in lines(text))
    return {match[2]: Digest(match[1]) for match in matches if match}
