"""Whether the order of starts shows in their times: what ran before, or how late in the block.

The time of a start is the sum of its cell in that matrix, of its block, and of what neither explains. Order
is balanced, so what is left must depend neither on the predecessor nor on the place. Both are tested:

- **Predecessor.** The mean of what is left after each series, as a multiple of its standard error; the
  largest one counts, for one hot cell may be enough. Its level is that of a permutation test: predecessors
  are dealt out again within each block (Fisher, "The Design of Experiments", 1935; the largest of several
  statistics: Westfall and Young, "Resampling-Based Multiple Testing", 1993). The order was drawn without
  regard to drift, so drift does not matter.
- **Place.** Within each block, the slope of what is left over the order, without the trend from the block
  before to the block after: a device that warms up over hours is not one that is slower at the end of each
  block. Neighbours share their drift, so a block is one observation, and the level is that of turning the
  signs of blocks (Fisher's randomization test of a symmetric mean).

Permutations are drawn by a generator of a fixed seed: the same starts give the same answer.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.stats import t_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Numbers = npt.NDArray[np.float64]
    _Indexes = npt.NDArray[np.int64]

#: With fewer, nothing is tested.
MIN_STARTS, MIN_BLOCKS, MIN_FOLLOWERS = 30, 5, 5
#: Of both tests together, and the smallest effect that matters, as a fraction.
ALARM_LEVEL, ALARM_EFFECT = 0.001, 0.01
#: An alarm lasts for as long as the effect is likelier than this.
CLEAR_LEVEL = 0.05
_TESTS = 2
#: Far-off values count as if they were this many standard deviations off.
_CLIPPED_AT = 3.0
#: After so many permutations a test ends that found enough larger ones, and in any case after the last.
_STAGES, _ENOUGH = (99, 999, 9_999), 10
#: Permutations that are in memory together.
_AT_ONCE = 500
_SWEEPS = 20
#: Sums that differ by less are equal.
_ROUNDING = 1e-6
_NEARLY = 0.9
_PRIOR_STARTS = 5
_SEED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedStart:
    """One start on a device, among all of them in the order in which they ran."""

    matrix: Hashable
    #: Of the matrix; and what it is in any matrix.
    cell: Hashable
    series: Hashable
    #: Of the matrix: its round, number and repeat.
    block: Hashable
    #: The logarithm of its time; None where it does not count; it is still a predecessor.
    log: float | None
    #: Whether nothing came between the start before it and this one: no health check, no restart.
    follows: bool


class OrderEffectKind(StrEnum):
    """What shows in the time."""

    PREDECESSOR = "predecessor"
    PLACE = "place"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """How much the order moves times, with its interval, as a fraction: 0.03 is 3 % slower."""

    kind: OrderEffectKind
    #: What slows or speeds up the start after it; None for the place.
    series: Hashable | None
    #: Of the last start in a block against the first; or of one after that series against others.
    effect: float
    low: float
    high: float
    #: The chance of so much where the order does not matter, by either of the tests.
    p_value: float
    #: Starts after that series; or blocks.
    count: int

    @property
    def is_alarming(self) -> bool:
        """Tell whether it is certain enough, and large enough to matter."""
        return self.p_value < ALARM_LEVEL and abs(self.effect) > ALARM_EFFECT

    @property
    def is_over(self) -> bool:
        """Tell whether an alarm of it is to be cleared."""
        return self.p_value >= CLEAR_LEVEL or abs(self.effect) <= ALARM_EFFECT


def order_effects(starts: Sequence[OrderedStart]) -> tuple[OrderEffect, ...]:
    """Test starts of one device for effects of their order, the likelier one first.

    Args:
        starts: of some matrices, in the order in which they ran, those that do not count among them.
    """
    import numpy as np

    counted = np.array([place for place, start in enumerate(starts) if start.log is not None], dtype=np.int64)
    if len(counted) < MIN_STARTS:
        return ()
    data = _Data(starts, counted)
    if data.blocks < MIN_BLOCKS:
        return ()
    effects = [effect for effect in (_predecessor_effect(data), _place_effect(data)) if effect is not None]
    return tuple(sorted(effects, key=lambda effect: effect.p_value))


class _Data:
    """Starts as arrays of one number each, and what cells and blocks leave of their logarithms."""

    def __init__(self, starts: Sequence[OrderedStart], counted: "_Indexes") -> None:
        import numpy as np

        own = [starts[place] for place in counted]
        #: The place of each among all starts: the nearest thing to a time that all have.
        self.at: _Numbers = counted.astype(np.float64)
        self.cell, self.cells = _numbered([(start.matrix, start.cell) for start in own])
        self.block, self.blocks = _numbered([(start.matrix, start.block) for start in own])
        matrix, _ = _numbered([start.matrix for start in own])
        self.matrix_of_block: _Indexes = np.zeros(self.blocks, dtype=np.int64)
        self.matrix_of_block[self.block] = matrix
        names = list(dict.fromkeys(start.series for start in starts))
        number = {name: index for index, name in enumerate(names)}
        self.series: list[Hashable] = names
        #: The series that ran before each; -1 where that is not known.
        self.before: _Indexes = np.array(
            [
                number[starts[place - 1].series] if place > 0 and starts[place].follows else -1
                for place in counted
            ],
            dtype=np.int64,
        )
        logs: _Numbers = np.array([start.log for start in own], dtype=np.float64)
        self.logs = logs
        self.left, self.level = self.without_cells_and_blocks(logs)
        self.scaled = self._scaled()

    def without_cells_and_blocks(self, values: "_Numbers") -> tuple["_Numbers", "_Numbers"]:
        """Return what is left of values by least squares, and the level of each block."""
        import numpy as np

        left, level = values - values.mean(), np.zeros(self.blocks)
        for _ in range(_SWEEPS):
            left = left - _means(left, self.cell, self.cells)[self.cell]
            shift = _means(left, self.block, self.blocks)
            level += shift
            left = left - shift[self.block]
        return left, level

    def _scaled(self) -> "_Numbers":
        """Return what is left in standard deviations of its cell, clipped: few values decide nothing."""
        import numpy as np

        variance = _robust_variance(self.left)
        if variance == 0.0:
            return np.zeros_like(self.left)
        scales = np.empty(self.cells)
        for cell in range(self.cells):
            own = self.left[self.cell == cell]
            known = len(own) * _robust_variance(own) + _PRIOR_STARTS * variance
            scales[cell] = math.sqrt(known / (len(own) + _PRIOR_STARTS))
        scaled = np.clip(self.left / scales[self.cell], -_CLIPPED_AT, _CLIPPED_AT)
        return scaled - _means(scaled, self.block, self.blocks)[self.block]


def _predecessor_effect(data: _Data) -> OrderEffect | None:
    import numpy as np

    known = data.before >= 0
    counts = np.bincount(data.before[known], minlength=len(data.series))
    total = int(known.sum())
    is_tested = (counts >= MIN_FOLLOWERS) & (counts < total)
    if not is_tested.any():
        return None
    block, scaled = data.block[known], data.scaled[known]
    in_blocks = np.argsort(block, kind="stable")
    block, scaled, before = block[in_blocks], scaled[in_blocks], data.before[known][in_blocks]
    errors = np.sqrt(np.where(is_tested, counts * (1 - counts / total), 1.0))

    def distances(predecessors: "_Indexes") -> "_Numbers":
        sums = _sums(scaled, predecessors, len(data.series))
        return np.where(is_tested, sums / errors, 0.0)

    seen = distances(before)
    largest = float(np.abs(seen).max())
    # Of two predecessors one slows about as much as the other speeds up: the one that slows is named.
    named = int(np.where(np.abs(seen) >= _NEARLY * largest, seen, -math.inf).argmax())
    generator = np.random.Generator(np.random.PCG64(_SEED))

    def draw(number: int) -> int:
        larger = 0
        for _ in range(number):
            # A number below 1 does not move a start to another block.
            order = np.argsort(block + generator.random(total))
            larger += bool(np.abs(distances(before[order])).max() >= largest - _ROUNDING)
        return larger

    return _estimate(data, named, p_value=_p_value(draw))


def _estimate(data: _Data, series: int, *, p_value: float) -> OrderEffect | None:
    """Return the effect of one predecessor by least squares beside cells and blocks."""
    import numpy as np

    follows = (data.before == series).astype(np.float64)
    own, _ = data.without_cells_and_blocks(follows)
    information = float(own @ own)
    degrees = len(data.left) - data.cells - data.blocks
    if information < 1e-9 or degrees < 1:
        return None
    mean = float(own @ data.left) / information
    rest = data.left - mean * own
    half = t_quantile((1 + CONFIDENCE) / 2, degrees) * math.sqrt(float(rest @ rest) / degrees / information)
    return _effect(
        OrderEffectKind.PREDECESSOR,
        mean,
        half,
        series=data.series[series],
        p_value=p_value,
        count=int(follows.sum()),
    )


def _place_effect(data: _Data) -> OrderEffect | None:
    import numpy as np

    sizes = np.bincount(data.block, minlength=data.blocks)
    centres = _means(data.at, data.block, data.blocks)
    off_centre = data.at - centres[data.block]
    trend = _trends(data, centres)[data.block] * off_centre
    # From -1/2 at the first of a block to 1/2 at the last, in the order in which they ran.
    spans = np.zeros(data.blocks)
    np.maximum.at(spans, data.block, np.abs(off_centre))
    usable = (sizes >= 2) & (spans > 0)
    if usable.sum() < MIN_BLOCKS:
        return None
    place = off_centre / (2 * np.where(spans > 0, spans, 1.0))[data.block]
    scale = math.sqrt(_robust_variance(data.left)) or 1.0
    clipped = np.clip((data.left - trend) / scale, -_CLIPPED_AT, _CLIPPED_AT)

    def slopes(left: "_Numbers") -> "_Numbers":
        return _sums(place * left, data.block, data.blocks)[usable]

    seen, squares = slopes(clipped), slopes(place)
    generator = np.random.Generator(np.random.PCG64(_SEED))

    def draw(number: int) -> int:
        signs = generator.integers(0, 2, size=(number, len(seen))) * 2.0 - 1.0
        return int((np.abs(signs @ seen) >= abs(seen.sum()) - _ROUNDING).sum())

    raw = slopes(data.left - trend)
    mean = float(raw.sum() / squares.sum())
    rest = raw - mean * squares
    count = len(seen)
    error = math.sqrt(float(rest @ rest) * count / (count - 1)) / float(squares.sum())
    half = t_quantile((1 + CONFIDENCE) / 2, count - 1) * error
    return _effect(OrderEffectKind.PLACE, mean, half, series=None, p_value=_p_value(draw), count=count)


def _trends(data: _Data, centres: "_Numbers") -> "_Numbers":
    """Return the slope from the block before to the block after each, for a step of one start."""
    import numpy as np

    order = np.lexsort((centres, data.matrix_of_block))
    slopes = np.zeros(data.blocks)
    for place, block in enumerate(order):
        # At the ends of a matrix, from or to the block itself.
        first, last = (
            neighbour if data.matrix_of_block[neighbour] == data.matrix_of_block[block] else block
            for neighbour in (order[max(place - 1, 0)], order[min(place + 1, len(order) - 1)])
        )
        if centres[last] > centres[first]:
            slopes[block] = (data.level[last] - data.level[first]) / (centres[last] - centres[first])
    return slopes


def _effect(
    kind: OrderEffectKind,
    mean: float,
    half: float,
    *,
    series: Hashable | None,
    p_value: float,
    count: int,
) -> OrderEffect:
    return OrderEffect(
        kind=kind,
        series=series,
        effect=math.expm1(mean),
        low=math.expm1(mean - half),
        high=math.expm1(mean + half),
        p_value=p_value,
        count=count,
    )


def _p_value(draw: Callable[[int], int]) -> float:
    """Return the level of a permutation test, by either of the tests (Bonferroni).

    Most tests end early: Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78(2), 1991.
    """
    larger = drawn = 0
    for stage in _STAGES:
        while drawn < stage:
            number = min(stage - drawn, _AT_ONCE)
            larger, drawn = larger + draw(number), drawn + number
        if larger >= _ENOUGH:
            break
    return min(1.0, _TESTS * (larger + 1) / (drawn + 1))


def _numbered(names: Sequence[Any]) -> tuple["_Indexes", int]:
    import numpy as np

    number = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64), len(number)


def _sums(values: "_Numbers", groups: "_Indexes", count: int) -> "_Numbers":
    import numpy as np

    return np.asarray(np.bincount(groups, weights=values, minlength=count), dtype=np.float64)


def _means(values: "_Numbers", groups: "_Indexes", count: int) -> "_Numbers":
    import numpy as np

    return _sums(values, groups, count) / np.maximum(np.bincount(groups, minlength=count), 1)


def _robust_variance(values: "_Numbers") -> float:
    """Return the variance by the median of the distances from 0, as of a normal distribution."""
    import numpy as np

    return float((1.4826 * np.median(np.abs(values))) ** 2)
