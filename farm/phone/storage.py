"""What `df -k PATH` prints: toybox, coreutils, and the toolbox of old."""

import re

from farm.phone.text import lines

_UNIT_BYTES = {"": 1024, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_AMOUNT = r"(\d{1,12}(?:\.\d{1,3})?)([KMGT]?)"
#: Size, used, available, use%, mount point, at the end of a line: a long file system name is wrapped before.
_ROW = re.compile(rf"(?:.*\s)?{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+%\s+(/\S*)", re.ASCII)
#: Android's toolbox, up to 6: mount point, size, used, free, block size.
_OLD_ROW = re.compile(rf"(/\S*)\s+{_AMOUNT}\s+{_AMOUNT}\s+{_AMOUNT}\s+\d+", re.ASCII)


def storage_free_bytes(text: str) -> int | None:
    """Free bytes on the one file system listed; None when none or several are.

    A plain figure is kilobytes, which all of them mean by 1K-blocks; a figure with a unit is what it says.
    """
    found = [_free_bytes(match[5], match[6]) for match in _rows(text, _ROW)]
    found += [_free_bytes(match[6], match[7]) for match in _rows(text, _OLD_ROW)]
    return found[0] if len(found) == 1 else None


def _rows(text: str, row: re.Pattern[str]) -> list[re.Match[str]]:
    return [match for line in lines(text) if (match := row.fullmatch(line))]


def _free_bytes(amount: str, unit: str) -> int:
    return int(float(amount) * _UNIT_BYTES[unit])
