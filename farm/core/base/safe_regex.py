"""Regular expressions of other people, tried on output of other people's programs.

They are RE2's: their time is linear in the text whatever the pattern, where Python's own can take for ever on
`(a+)+$`. They lack look-around and back-references; `^` and `$` are ends of lines. That time also grows with
the program that a pattern becomes, in which counted repetitions are written out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import re2

MAX_PATTERN_CHARS = 1000
#: Instructions of RE2; a megabyte of output then takes seconds at most, where 6000 take it 40 s.
MAX_PROGRAM_SIZE = 3000
_LINEWISE = "(?m)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The text of a pattern's group, with the text beside it, which shows whether a number is complete.

    Where the pattern itself matched what stands beside, its author has seen it, and nothing is said of it.
    """

    before: str
    text: str
    after: str


def pattern_problem(pattern: str, *, groups: int | None = None) -> str | None:
    """Return why a text is not a valid pattern or has another number of groups; None when it is valid."""
    if not 0 < len(pattern) <= MAX_PATTERN_CHARS:
        return f"a regular expression of 1 to {MAX_PATTERN_CHARS} characters is needed"
    try:
        group_count = _compile(pattern).groups
    except re2.error as error:
        return f"not a regular expression of RE2: {_error_text(error, pattern)}"
    if groups is not None and group_count != groups:
        return f"has {group_count} groups (...), {groups} is needed: the number; (?:...) makes none"
    return None


def cost_problem(pattern: str) -> str | None:
    """Return why a valid pattern takes too long on large outputs; None where it does not."""
    size = _compile(pattern).programsize if pattern else 0
    if size <= MAX_PROGRAM_SIZE:
        return None
    return (
        f"its counted repetitions are written out to {size} instructions, at most {MAX_PROGRAM_SIZE}:"
        " write `*` or `+` for large counts"
    )


def first_line(pattern: str, text: str) -> str | None:
    """Return the first line that a pattern matches, or the line where the match starts."""
    data = _bytes(text)
    match = _compile(pattern).search(data)
    if match is None:
        return None
    start = data.rfind(b"\n", 0, match.start()) + 1
    end = data.find(b"\n", match.start())
    return _text(data[start : end if end >= 0 else None]).strip()


def captures(pattern: str, text: str, *, beside: int = 4) -> Iterator[Capture]:
    """Yield the text of the pattern's one group for each match, with up to `beside` bytes on each side."""
    data = _bytes(text)
    for match in _compile(pattern).finditer(data):
        start, end = match.span(1)
        if start >= 0:
            before = data[max(0, start - beside) : start] if start == match.start() else b""
            after = data[end : end + beside] if end == match.end() else b""
            yield Capture(before=_text(before), text=_text(data[start:end]), after=_text(after))


@lru_cache(maxsize=512)
def _compile(pattern: str) -> re2._Regexp:
    options = re2.Options()
    # It would write to stderr otherwise.
    options.log_errors = False
    return re2.compile(f"{_LINEWISE}{pattern}", options)


def _error_text(error: re2.error, pattern: str) -> str:
    message = error.args[0] if error.args else ""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return text.replace(f"{_LINEWISE}{pattern}", pattern)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
