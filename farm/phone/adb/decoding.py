"""From bytes a phone or a capture holds to lines, whatever happened to them on their way."""

import re

from farm.phone.adb.log_prefix import without_log_prefix

_BOM_ENCODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
_LINE_END = re.compile(r"\r{0,3}\n|\r")
#: `grep --color`, shells with a coloured prompt, and those that name the terminal's window.
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))", re.ASCII)
#: Byte order marks, NULs, and what web pages put for a blank.
_UNSEEN = str.maketrans({"\ufeff": None, "\u200b": None, "\0": None, "\u00a0": " "})


def decode_output(data: bytes) -> str:
    """UTF-8 with replacement; UTF-16 (a PowerShell redirect) by its mark, or where half of it is NUL."""
    for mark, encoding in _BOM_ENCODINGS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    # What phones print is ASCII for the most part, of which one byte in two is NUL then.
    first_are_nul, second_are_nul = _are_nul(data[::2]), _are_nul(data[1::2])
    if second_are_nul and not first_are_nul:
        return data.decode("utf-16-le", errors="replace")
    if first_are_nul and not second_are_nul:
        return data.decode("utf-16-be", errors="replace")
    return data.decode(errors="replace")


def lines(text: str) -> list[str]:
    """The lines, without line ends of any system, colours, marks and a logger's words; blanks in front stay.

    adb of old on Windows ends lines with CR CR LF.
    """
    plain = _ESCAPE.sub("", text.translate(_UNSEEN))
    return [without_log_prefix(line).rstrip() for line in _LINE_END.split(plain)]


def complete_lines(text: str) -> list[str]:
    """As `lines`, without a last one that has no line end: it may be cut, and its number a smaller one."""
    return lines(text)[:-1]


def whole_number(text: str) -> int | None:
    """The number that the text is, in ASCII digits; None when it is anything else."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def decimal_number(text: str) -> float | None:
    """As `whole_number`, with a decimal point allowed; never infinite or NaN."""
    whole, _, part = text.strip().partition(".")
    if whole_number(whole) is None or not (part == "" or (part.isascii() and part.isdigit())):
        return None
    return float(text)


def _are_nul(data: bytes) -> bool:
    """Whether most are NUL, of more than a few."""
    return len(data) >= 4 and 2 * data.count(0) > len(data)
