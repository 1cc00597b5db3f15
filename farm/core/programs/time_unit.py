"""Units of a harness's numbers: time, or work per time, which is converted to time per unit of work."""

from dataclasses import dataclass

#: 11 days: longer than any run, and far within 64 bits.
LONGEST_NS = 10**15

_NS_BY_UNIT = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "sec": 1e9,
    "min": 60e9,
}
_PER_SECOND_BY_UNIT = {"fps": 1.0, "Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
_PER_SECOND = "/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeUnit:
    """A unit of time, or of work per second: `scale` in nanoseconds, or in pieces of work per second."""

    name: str
    scale: float
    is_rate: bool = False

    @property
    def means(self) -> str:
        """Explain a value of the unit where that is not obvious."""
        return f"time per unit of work, from {self.name}" if self.is_rate else "time"

    def in_ns(self, value: float) -> float | None:
        """Return a value as time; None where it gives none."""
        if value <= 0:
            return None
        ns = 1e9 / (value * self.scale) if self.is_rate else value * self.scale
        return ns if 0 < ns <= LONGEST_NS else None


def time_unit(text: str) -> TimeUnit:
    """Return the unit of that name: `ms`, `img/s`.

    Raises:
        ValueError: it is none of time; says which are.
    """
    if text in _NS_BY_UNIT:
        return TimeUnit(name=text, scale=_NS_BY_UNIT[text])
    if text in _PER_SECOND_BY_UNIT:
        return TimeUnit(name=text, scale=_PER_SECOND_BY_UNIT[text], is_rate=True)
    if text.endswith(_PER_SECOND) and text != _PER_SECOND:
        return TimeUnit(name=text, scale=1.0, is_rate=True)
    raise ValueError(f"`{text}` is no unit of time: ns, us, ms, s, min; or of work per time: img/s, fps, Hz")
