"""The step of printed numbers: the least difference between two of them."""

import re
from math import floor, log10, nan

#: Significant digits that C++ streams print unless a program asks for more.
_STREAM_DIGITS = 6


_DECIMAL = re.compile(r"[+-]?[0-9]*(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,6}))?", re.ASCII)


def last_digit(text: str) -> float:
    """Return the weight of the last digit of a decimal number: 0.01 of `3.20`, 100 of `3.2e3`.

    It is infinite where no float holds it, and NaN where the text is no decimal number.
    """
    match = _DECIMAL.fullmatch(text)
    return float(f"1e{int(match[2] or 0) - len(match[1] or '')}") if match else nan


def stream_step(value: float) -> float:
    """Return the step of a number that a C++ stream printed, which leaves out zeros at the end.

    Args:
        value: above zero, in any unit; the step has the same one.
    """
    return float(10.0 ** (floor(log10(value)) + 1 - _STREAM_DIGITS))


def whole_ns(step_ns: float) -> int:
    """Return a step in whole nanoseconds, in which times are kept: at least one."""
    return max(1, round(step_ns))
