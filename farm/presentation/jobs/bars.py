"""Values as bars of one character each."""

_BARS = "▁▂▃▄▅▆▇█"
#: In place of a value that is not known.
UNKNOWN_BAR = "·"


def bar(value: float, low: float, high: float) -> str:
    """Return the bar of a value, the lowest at `low` and the highest at `high`; each stands for an eighth."""
    share = (value - low) / (high - low) if high > low else 0.0
    return _BARS[max(0, min(int(share * len(_BARS)), len(_BARS) - 1))]
