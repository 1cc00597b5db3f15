"""Durations as text: `90s`, `30m`, `2h`, `7d`."""

import re

from farm.core.errors import InvalidInput

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")


def seconds(text: str) -> int:
    """Return the seconds of a duration.

    Raises:
        InvalidInput: the text is not a whole number with a unit.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a duration", hint="write it like 90s, 30m, 2h or 7d")
    return int(match[1]) * _SECONDS_BY_UNIT[match[2]]
