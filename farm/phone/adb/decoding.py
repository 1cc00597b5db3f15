"""Decoding of device output into lines, whatever altered it on the way."""

import re

from farm.phone.adb.log_prefix import without_log_prefix

_LINE_END = re.compile(r"\r{0,3}\n|\r")
#: `grep --color`, shells with a coloured prompt, and prompts that set the terminal's title.
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))", re.ASCII)
#: Byte order marks, NULs, and the blanks of web pages.
_UNSEEN = str.maketrans({"\ufeff": None, "\u200b": None, "\0": None, "\u00a0": " "})


def lines(text: str) -> list[str]:
    """Return the lines without line ends, colours, marks and logger prefixes; leading blanks stay.

    Old versions of adb on Windows end lines with CR CR LF.
    """
    plain = _ESCAPE.sub("", text.translate(_UNSEEN))
    return [without_log_prefix(line).rstrip() for line in _LINE_END.split(plain)]


def complete_lines(text: str) -> list[str]:
    """Return `lines` without a last one that has no line end: it may be cut, and its number a smaller one."""
    return lines(text)[:-1]


def whole_number(text: str) -> int | None:
    """Parse a text of ASCII digits as a number; None when it is anything else."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def decimal_number(text: str) -> float | None:
    """Parse a number as `whole_number`, with a decimal point allowed; never infinite or NaN."""
    whole, _, part = text.strip().partition(".")
    if whole_number(whole) is None or not (part == "" or (part.isascii() and part.isdigit())):
        return None
    return float(text)
