"""Numbers with units, as people write and read them."""

import re
from collections.abc import Sequence

_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_PERCENT = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,4})?)\s?%", re.ASCII)
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def duration_text(ns: float) -> str:
    """Format a duration to three significant digits: `1.23 ms`, `456 µs`, `-17.0 ns`."""
    return _scaled_text(ns, _DURATIONS)


def size_text(size_bytes: float) -> str:
    """Format a size in powers of 1000 to three significant digits: `13.3 MB`."""
    return _scaled_text(size_bytes, _SIZES)


def quantity_text(value: float, unit: str) -> str:
    """Format a metric in its own unit: `12.25 MB`, `30 img/s`; bytes as a size."""
    return size_text(value) if unit == "bytes" else f"{value:.6g} {unit}"


def whole_text(number: int) -> str:
    """Format a whole number in groups of three digits: `3 504 872`."""
    return f"{number:,}".replace(",", " ")


def ratio_text(ratio: float) -> str:
    """Format a speedup: `2.31x`; three decimals below 1.1, where one per cent matters."""
    return f"{ratio:.3f}x" if ratio < 1.1 else f"{ratio:.2f}x"


def elapsed_text(seconds: float) -> str:
    """Format a waiting time in whole seconds: `42 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def share_of_percent(text: str) -> float | None:
    """Parse a percentage below 100: `3%` and `3 %` are 0.03; None for anything else."""
    match = _PERCENT.fullmatch(text)
    return float(match[1]) / 100 if match else None


def _scaled_text(value: float, units: Sequence[tuple[float, str]]) -> str:
    if value == 0:
        return f"0 {units[-1][1]}"
    for factor, unit in units[:-1]:
        # 999.6 of a unit would be printed as 1000: it is 1.00 of the next one.
        if abs(value) >= factor * 0.9995:
            return f"{_three_digits(value / factor)} {unit}"
    factor, unit = units[-1]
    whole = float(value).is_integer()
    return f"{value:.0f} {unit}" if whole else f"{_three_digits(value / factor)} {unit}"


def _three_digits(value: float) -> str:
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{value:.{decimals}f}"
