"""The rounds of a comparison: one point each on the axis of the speedup, in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.web.charts.forest import Span, Tick, ratio_tick_text
from farm.web.charts.scale import log_scale
from farm.wire.documents.results.explain import RoundView

#: In pixels; the width is that of the page.
HEIGHT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPoint:
    """One round."""

    #: In percent of the width.
    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsChart:
    """The speedup of each round, upwards is faster, with the interval of all behind them."""

    height: float
    points: Sequence[RoundPoint]
    one: float
    interval: Span | None
    ticks: Sequence[Tick]


def rounds_chart(rounds: Sequence[RoundView], low: float | None, high: float | None) -> RoundsChart | None:
    """Return the chart of a comparison's rounds; None without any."""
    if not rounds:
        return None
    bounds = [value for value in (low, high) if value is not None]
    scale = log_scale([*(view.ratio for view in rounds), *bounds], length=HEIGHT, least=1.02)
    slot = 100 / len(rounds)

    def y(ratio: float) -> float:
        return round(HEIGHT - scale.place(ratio), 1)

    return RoundsChart(
        height=HEIGHT,
        points=[
            RoundPoint(
                x=round((place + 0.5) * slot, 2),
                y=y(view.ratio),
                words=f"round {view.round}: {ratio_tick_text(view.ratio)}",
            )
            for place, view in enumerate(rounds)
        ],
        one=y(1.0),
        interval=None if low is None or high is None else Span(low=y(high), high=y(low)),
        ticks=[Tick(at=y(value), text=ratio_tick_text(value)) for value in scale.ticks()],
    )
