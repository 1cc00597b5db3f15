"""Bar charts of counts over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

WIDTH, HEIGHT = 480.0, 96.0
_GAP = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar, with the words of its tooltip and of its row in the table."""

    x: float
    y: float
    width: float
    height: float
    at: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars from the left to the right; the highest one is as high as the chart."""

    width: float
    height: float
    bars: Sequence[Bar]
    most: int

    @property
    def total(self) -> int:
        """Return the sum of all bars."""
        return sum(bar.count for bar in self.bars)


def bar_chart(counts: Sequence[tuple[datetime, int]]) -> BarChart:
    """Return a chart of counts by time."""
    most = max((count for _, count in counts), default=0)
    slot = WIDTH / max(len(counts), 1)
    bars = []
    for place, (at, count) in enumerate(counts):
        height = round(HEIGHT * count / most, 1) if most else 0.0
        bars.append(
            Bar(
                x=round(place * slot, 1),
                y=round(HEIGHT - height, 1),
                width=round(slot - _GAP, 1),
                height=height,
                at=at,
                count=count,
            )
        )
    return BarChart(width=WIDTH, height=HEIGHT, bars=bars, most=most)
