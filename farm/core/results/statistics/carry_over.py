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
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.results.statistics.order_effect import MIN_BLOCKS, OrderedStart, OrderEffect, OrderEffectKind
from farm.core.runs.stats import t_quantile

_Numbers = npt.NDArray[np.float64]
_Indexes = npt.NDArray[np.int64]

#: With fewer, nothing is tested.
MIN_STARTS, MIN_FOLLOWERS = 30, 5
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
_LEAST_HELD = 0.1
_PRIOR_STARTS = 5
_SEED = 20


def order_effects(starts: Sequence[OrderedStart]) -> tuple[OrderEffect, ...]:
    """Test starts of one device for effects of their order, the likelier one first.

    Args:
        starts: of some matrices, in the order in which they ran, those that do not count among them.
    """
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

    def __init__(self, starts: Sequence[OrderedStart], counted: _Indexes) -> None:
        own = [starts[place] for place in counted]
        #: The place of each among all starts: the nearest thing to a time that all have.
        self.at: _Numbers = counted.astype(np.float64)
        self.cell, self.cells = _numbered([(start.matrix, start.cell) for start in own])
        self.block, self.blocks = _numbered([(start.matrix, start.block) for start in own])
        matrix, self.matrices = _numbered([start.matrix for start in own])
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

    def without_cells_and_blocks(self, values: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Return what is left of values by least squares, and the level of each block."""
        left, level = values - values.mean(), np.zeros(self.blocks)
        for _ in range(_SWEEPS):
            left = left - _means(left, self.cell, self.cells)[self.cell]
            shift = _means(left, self.block, self.blocks)
            level += shift
            left = left - shift[self.block]
        return left, level

    def _scaled(self) -> _Numbers:
        """Return what is left in standard deviations of its cell, clipped: few values decide nothing."""
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

    def distances(predecessors: _Indexes) -> _Numbers:
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
        moved=mean,
    )


def _place_effect(data: _Data) -> OrderEffect | None:
    sizes = np.bincount(data.block, minlength=data.blocks)
    centres = _means(data.at, data.block, data.blocks)
    off_centre = data.at - centres[data.block]
    # From -1/2 at the first of a block to 1/2 at the last, in the order in which they ran.
    spans = np.zeros(data.blocks)
    np.maximum.at(spans, data.block, np.abs(off_centre))
    usable = (sizes >= 2) & (spans > 0)
    if usable.sum() < MIN_BLOCKS:
        return None
    place = off_centre / (2 * np.where(spans > 0, spans, 1.0))[data.block]
    left, _ = data.without_cells_and_blocks(data.logs - _trends(data, centres)[data.block] * off_centre)
    scale = math.sqrt(_robust_variance(data.left)) or 1.0
    clipped = np.clip(left / scale, -_CLIPPED_AT, _CLIPPED_AT)

    def slopes(values: _Numbers) -> _Numbers:
        return _sums(place * values, data.block, data.blocks)[usable]

    seen = slopes(clipped)
    generator = np.random.Generator(np.random.PCG64(_SEED))

    def draw(number: int) -> int:
        signs = generator.integers(0, 2, size=(number, len(seen))) * 2.0 - 1.0
        return int((np.abs(signs @ seen) >= abs(seen.sum()) - _ROUNDING).sum())

    # Cells take their part of the place where their places differ by chance: only the rest of it counts.
    raw, squares = slopes(left), slopes(data.without_cells_and_blocks(place)[0])
    mean = float(raw.sum() / squares.sum())
    rest = raw - mean * squares
    count = len(seen)
    # What is left varies less than times do, by the share of cells, whether their places differ or not.
    held = 1 - (data.cells - data.matrices) / max(1, len(left) - data.blocks)
    variance = (
        float(rest @ rest) * count / (count - 1) / (float(slopes(place).sum()) * max(held, _LEAST_HELD))
    )
    half = t_quantile((1 + CONFIDENCE) / 2, count - 1) * math.sqrt(variance / float(squares.sum()))
    return _effect(
        OrderEffectKind.PLACE,
        mean,
        half,
        series=None,
        p_value=_p_value(draw),
        count=count,
        moved=mean * _largest_imbalance(data, place),
    )


def _largest_imbalance(data: _Data, place: _Numbers) -> float:
    """Return how far apart the mean places of two cells lie at most, over the blocks that both are in.

    A balanced order makes this small: by so much of an effect of the place their ratio is off.
    """
    by_block: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for block, cell, at in zip(data.block.tolist(), data.cell.tolist(), place.tolist(), strict=True):
        by_block[block].append((cell, at))
    apart: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for starts in by_block.values():
        for (cell, at), (other, other_at) in combinations(sorted(starts), 2):
            apart[cell, other].append(at - other_at)
    known = (differences for differences in apart.values() if len(differences) >= MIN_BLOCKS)
    return max((abs(math.fsum(own)) / len(own) for own in known), default=0.0)


def _trends(data: _Data, centres: _Numbers) -> _Numbers:
    """Return the slope from the block before to the block after each, for a step of one start."""
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
    moved: float,
) -> OrderEffect:
    return OrderEffect(
        kind=kind,
        series=series,
        effect=math.expm1(mean),
        low=math.expm1(mean - half),
        high=math.expm1(mean + half),
        p_value=p_value,
        count=count,
        moved=math.expm1(moved),
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


def _numbered(names: Sequence[Any]) -> tuple[_Indexes, int]:
    number = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64), len(number)


def _sums(values: _Numbers, groups: _Indexes, count: int) -> _Numbers:
    return np.asarray(np.bincount(groups, weights=values, minlength=count), dtype=np.float64)


def _means(values: _Numbers, groups: _Indexes, count: int) -> _Numbers:
    return _sums(values, groups, count) / np.maximum(np.bincount(groups, minlength=count), 1)


def _robust_variance(values: _Numbers) -> float:
    """Return the variance by the median of the distances from 0, as of a normal distribution."""
    return float((1.4826 * np.median(np.abs(values))) ** 2)
