"""The forest plot: one row a comparison, its interval on a log axis, beside the margin and the A/A pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.core.base.units import ratio_text
from farm.web.charts.scale import log_scale
from farm.wire.documents.results.speedups import SpeedupView

WIDTH = 420.0
ROW_HEIGHT = 28.0
_AXIS_HEIGHT = 26.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled value of an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of an axis."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Return its width, at least one unit, so that it is seen."""
        return max(round(self.high - self.low, 1), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One comparison; without an interval only its point is drawn, without a speedup nothing."""

    middle: float
    point: float | None
    interval: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """A forest plot. Its height is in pixels; places across it are of `width`, however wide it is drawn."""

    width: float
    height: float
    rows: Sequence[ForestRow]
    #: Where the speedup is 1, with the margin on both sides.
    one: float
    margin: Span | None
    #: The intervals of the A/A pairs together: what equal cells showed in this session.
    noise: Span | None
    ticks: Sequence[Tick]

    @property
    def plot_height(self) -> float:
        """Return the height of the rows without the axis."""
        return self.height - _AXIS_HEIGHT


def forest_plot(views: Sequence[SpeedupView]) -> Forest:
    """Return the forest plot of some comparisons, in their order."""
    aa = [view for view in views if view.aa and view.ci_low is not None and view.ci_high is not None]
    noise = (min(view.ci_low or 1.0 for view in aa), max(view.ci_high or 1.0 for view in aa)) if aa else None
    return forest_of(
        [(view.speedup, view.ci_low, view.ci_high) for view in views],
        margin=max((view.margin for view in views), default=0.0),
        noise=noise,
    )


#: A speedup with the ends of its interval.
Estimate = tuple[float | None, float | None, float | None]


def forest_of(
    estimates: Sequence[Estimate], *, margin: float = 0.0, noise: tuple[float, float] | None = None
) -> Forest:
    """Return the forest plot of some estimates, in their order.

    Args:
        estimates: a row for each.
        margin: as a fraction; 0 draws none.
        noise: the interval of what is known to be equal.
    """
    bounds = [bound for estimate in estimates for bound in estimate if bound is not None]
    scale = log_scale(bounds, length=WIDTH, least=1 + max(1.5 * margin, 0.05))

    def span(low: float, high: float) -> Span:
        return Span(low=scale.place(low), high=scale.place(high))

    return Forest(
        width=WIDTH,
        height=ROW_HEIGHT * len(estimates) + _AXIS_HEIGHT,
        rows=[
            ForestRow(
                middle=ROW_HEIGHT * (place + 0.5),
                point=None if speedup is None else scale.place(speedup),
                interval=None if low is None or high is None else span(low, high),
            )
            for place, (speedup, low, high) in enumerate(estimates)
        ],
        one=scale.place(1.0),
        margin=span(1 / (1 + margin), 1 + margin) if margin else None,
        noise=None if noise is None else span(*noise),
        ticks=[Tick(at=scale.place(value), text=ratio_tick_text(value)) for value in scale.ticks()],
    )


def ratio_tick_text(value: float) -> str:
    """Return a speedup as axes show it: `1.5x`."""
    number = ratio_text(value).removesuffix("x")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}x"
