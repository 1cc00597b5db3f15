"""The step of printed numbers: the least difference between two of them."""

from math import floor, log10

#: C++ streams print so many significant digits, unless a program asks for more.
_STREAM_DIGITS = 6


def last_digit(text: str) -> float:
    """Return the weight of the last digit of a decimal number: 0.01 of `3.20`, 100 of `3.2e3`."""
    mantissa, _, exponent = text.lower().partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def stream_step(value: float) -> float:
    """Return the step of a number that a C++ stream printed, which leaves out zeros at the end.

    Args:
        value: above zero, in any unit; the step has the same one.
    """
    return float(10.0 ** (floor(log10(value)) + 1 - _STREAM_DIGITS))


def whole_ns(step_ns: float) -> int:
    """Return a step in whole nanoseconds, in which times are kept: at least one."""
    return max(1, round(step_ns))
