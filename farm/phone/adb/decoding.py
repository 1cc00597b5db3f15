"""Decoding of device output into lines, whatever altered it on the way."""

import re
from collections.abc import Iterable

#: Android's levels. A tag may contain blanks; glog names the line of a source file.
_LEVEL = r"[VDIWEFA]"
_TAG = r"[^\s:(\n][^:(\n]{0,60}?"
_DAY = r"(?:\d{4}-)?\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d\.\d{3,9}"
_NUMBER = r" +\d{1,9}"
_PREFIX = re.compile(
    "|".join(
        (
            # threadtime; on request with zone and user, by name or number; or seconds since 1970.
            rf"(?:{_DAY} {_TIME}|\d{{9,11}}\.\d{{3,9}})(?: +[+-]\d{{4}})?"
            rf"(?: +[a-z]\w{{0,30}}|{_NUMBER}(?={_NUMBER}{_NUMBER} ))?"
            rf"{_NUMBER}{_NUMBER} {_LEVEL} {_TAG} *: ?",
            # time, and brief: `I/dumpsys ( 1234): `.
            rf"(?:{_DAY} {_TIME} +)?{_LEVEL}/{_TAG} *\( *\d{{1,9}}\): ?",
            rf"[IWEF]\d{{4}} {_TIME} +\d{{1,9}} [\w./-]{{1,100}}:\d{{1,6}}\] ?",
        )
    ),
    re.ASCII,
)
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(rf"{_WHOLE.pattern}(?:\.[0-9]*)?")
#: The longest known row of a table has 300 characters.
LONGEST_ROW_CHARS = 1000
_LINE_END = re.compile(r"\r{0,3}\n|\r")
#: `grep --color`, shells with a coloured prompt, and prompts that set the terminal's title.
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))", re.ASCII)
#: Byte order marks, NULs, and the blanks of web pages.
_UNSEEN = str.maketrans({"\ufeff": None, "\u200b": None, "\0": None, "\u00a0": " "})


def without_log_prefix(line: str) -> str:
    """Return the line without its prefix; leading blanks stay."""
    match = _PREFIX.match(line)
    return line if match is None else line[match.end() :]


def lines(text: str) -> list[str]:
    """Return the lines without line ends, colours, marks and logger prefixes; leading blanks stay.

    Old versions of adb on Windows end lines with CR CR LF.
    """
    plain = _ESCAPE.sub("", text.translate(_UNSEEN))
    return [without_log_prefix(line).rstrip() for line in _LINE_END.split(plain)]


def table_lines(text: str) -> list[str]:
    """Return `lines` without those that are longer than any row of a table or message of a kernel.

    Patterns that look for a row behind any prefix take time that grows with the square of a line's length.
    """
    return [line for line in lines(text) if len(line) <= LONGEST_ROW_CHARS]


def complete_lines(text: str) -> list[str]:
    """Return `lines` without a last one that has no line end: it may be cut, and its number a smaller one."""
    return lines(text)[:-1]


def first_match(pattern: re.Pattern[str], rows: Iterable[str]) -> re.Match[str] | None:
    """Return the match of the first line that the pattern matches as a whole."""
    return next((match for line in rows if (match := pattern.fullmatch(line))), None)


def whole_number(text: str) -> int | None:
    """Parse a text of ASCII digits as a number; None when it is anything else."""
    return int(text) if _WHOLE.fullmatch(text := text.strip()) else None


def decimal_number(text: str) -> float | None:
    """Parse a number as `whole_number`, with a decimal point allowed; never infinite or NaN."""
    return float(text) if _DECIMAL.fullmatch(text := text.strip()) else None
