"""Spans of time as people type them: `90s`, `30m`, `2h`, `7d`."""

import re

from farm.core.errors import InvalidInput

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"([0-9]{1,9})([smhd])")


def seconds(text: str) -> int:
    """The seconds of a span.

    Raises:
        InvalidInput: it is not written as a whole number and one unit.
    """
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{text!r} is not a span of time", hint="write it like 90s, 30m, 2h or 7d")
    return int(found[1]) * _SECONDS_BY_UNIT[found[2]]
