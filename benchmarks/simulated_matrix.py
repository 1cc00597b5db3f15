"""A simulated matrix on one device: its starts in the order that the farm plans, under a kind of noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.simulated_start import simulated_start
from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import BLOCK_CANDIDATES, BlockPlan
from farm.core.results.pairing import JoinedValue

Logs = npt.NDArray[np.float64]
#: The deviation of each start of a matrix, as they run: (random, starts, starts of a round).
Noise = Callable[[np.random.Generator, int, int], Logs]

_DEVICE = DeviceId("phone-1")


@dataclass(frozen=True, slots=True)
class SimulatedCell:
    """A cell of a small matrix, as the plan of its blocks sees it."""

    index: int
    baseline_index: int | None
    replica: int = 1


def star(candidates: int, *, duplicate: bool = False) -> list[SimulatedCell]:
    """Return a baseline with its candidates behind it, and its duplicate at the end."""
    cells = [SimulatedCell(0, None), *(SimulatedCell(1 + number, 0) for number in range(candidates))]
    return [*cells, SimulatedCell(len(cells), 0, 2)] if duplicate else cells


def simulated_starts(
    random: np.random.Generator,
    noise: Noise,
    cells: Sequence[SimulatedCell],
    *,
    rounds: int,
    carried: float = 0.0,
    size: int | None = BLOCK_CANDIDATES,
) -> tuple[dict[int, list[JoinedValue]], int]:
    """Return the starts of each cell in the order that the farm plans, and the starts of one round.

    Args:
        random: the source.
        noise: of the starts, one after another.
        cells: of the matrix.
        rounds: how many.
        carried: how much slower the start after that of the last cell is.
        size: candidates of one block at most; None: a round is one block, only shuffled.
    """
    plan = BlockPlan(cells, device_id=_DEVICE, seed=int(random.integers(1 << 31)), max_candidates=size)
    count = plan.start_count_per_round
    levels = noise(random, rounds * count, count)
    values: dict[int, list[JoinedValue]] = {cell.index: [] for cell in cells}
    before = -1
    for level, start in zip(levels, plan.starts(0, rounds * count), strict=True):
        log = float(level) + (carried if before == len(cells) - 1 else 0.0)
        values[start.cell_index].append(simulated_start(start.round, log, block=start.block))
        before = start.cell_index
    return values, count
