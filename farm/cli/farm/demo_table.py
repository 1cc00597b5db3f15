"""The tables of the demos that compare files, runtimes or number formats."""

from collections.abc import Sequence

from farm.core.base.units import ratio_text
from farm.wire.documents.results.speedups import SpeedupView

#: Heads of the columns that `compared` fills.
COMPARED_HEADS = ("speedup", "95 % interval", "verdict")


def compared(speedup: SpeedupView | None) -> tuple[str, str, str]:
    """Return speedup, interval and verdict of a cell; nothing of a baseline."""
    if speedup is None:
        return "", "", "baseline"
    interval = ""
    if speedup.ci_low is not None and speedup.ci_high is not None:
        interval = f"{speedup.ci_low:.3g} to {speedup.ci_high:.3g}"
    ratio = "" if speedup.speedup is None else ratio_text(speedup.speedup)
    return ratio, interval, str(speedup.verdict).replace("_", " ")


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return heads and lines of cells as text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (heads, *lines)
    )
