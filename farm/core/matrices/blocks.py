"""Blocks of a round: a baseline with some of its candidates, close in time, in an order that is balanced."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from farm.core.base.ids import DeviceId

#: Candidates of one block at most. With more, the two starts of a pair lie further apart; with fewer, the
#: baseline starts more often. `benchmarks/calibration.py` measures both.
BLOCK_CANDIDATES = 6


class ComparableCell(Protocol):
    """A cell of one device, and what it is compared to."""

    @property
    def index(self) -> int: ...
    @property
    def baseline_index(self) -> int | None: ...
    @property
    def replica(self) -> int:
        """1; from 2 on, an A/A duplicate of its baseline."""


class PlannedStart(NamedTuple):
    """One start of a cell."""

    cell_index: int
    round: int
    #: The block's number in its plan, from 0, the same in every round; not its position in time.
    block: int
    #: In the order of its block, from 1.
    place: int


class BlockPlan:
    """All starts of a device, its rounds one after the other.

    Within one plan a block has the same cells in all rounds; the blocks of a round are shuffled. A matrix
    that grows gets a new plan for its further rounds. The seed, device, cells and `max_candidates` determine
    them; matrices that are half expanded rely on it, so keep the keys unchanged.
    """

    def __init__(
        self,
        cells: Iterable[ComparableCell],
        *,
        device_id: DeviceId,
        seed: int,
        max_candidates: int | None = BLOCK_CANDIDATES,
    ) -> None:
        """Plan rounds of cells; with `max_candidates` None a round is one shuffled block, as it once was."""
        self._device_id, self._seed, self._max_candidates = device_id, seed, max_candidates
        self.blocks = _partition(list(cells), max_candidates, f"{seed}/{device_id}/members/")
        self.start_count_per_round = sum(map(len, self.blocks))
        #: The blocks of the round that was asked for last: rounds are asked for in their order.
        self._last: tuple[int, list[int]] = (0, [])

    def starts(self, first: int, stop: int, *, first_round: int = 1) -> Iterator[PlannedStart]:
        """Yield the starts from position `first` to the end of the block that `stop` is in or behind.

        Positions count from the beginning of `first_round`.
        """
        position = first
        while position < stop:
            number, offset = divmod(position, self.start_count_per_round)
            for block in self._order_of_blocks(first_round + number):
                size = len(self.blocks[block])
                if offset >= size:
                    offset -= size
                    continue
                if position >= stop:
                    return
                yield from islice(self._block(block, first_round + number), offset, None)
                position, offset = position + size - offset, 0

    def _order_of_blocks(self, round: int) -> list[int]:
        if self._last[0] != round:
            key = f"{self._seed}/{self._device_id}/{round}/blocks/"
            self._last = (round, shuffled(range(len(self.blocks)), key))
        return self._last[1]

    def _block(self, number: int, round: int) -> Iterator[PlannedStart]:
        cells = self.blocks[number]
        if self._max_candidates is None:
            order = shuffled(cells, f"{self._seed}/{self._device_id}/{round}/0/")
        else:
            order = balanced_order(cells, round=round, key=f"{self._seed}/{self._device_id}/{number}/")
        return (PlannedStart(index, round, number, place) for place, index in enumerate(order, start=1))


def start_count_by_cell(cells: Iterable[ComparableCell], max_candidates: int | None) -> dict[int, int]:
    """Return by index how often each cell of a device starts in one round: a baseline once in each block."""
    own = list(cells)
    candidate_count_by_baseline = Counter(
        cell.baseline_index for cell in own if cell.baseline_index is not None and cell.replica == 1
    )
    starts: dict[int, int] = {}
    for cell in own:
        baseline = cell.index if cell.baseline_index is None else cell.baseline_index
        is_shared = cell.baseline_index is None or cell.replica > 1
        count = candidate_count_by_baseline[baseline]
        starts[cell.index] = block_count(count, max_candidates) if is_shared else 1
    return starts


def block_count(candidate_count: int, max_candidates: int | None) -> int:
    """Return the number of blocks of a baseline with so many candidates, its duplicates not counted."""
    return 1 if max_candidates is None else max(1, -(-candidate_count // max_candidates))


def _partition(cells: Sequence[ComparableCell], max_candidates: int | None, key: str) -> list[list[int]]:
    """Return the cells of each block, by index, the baseline and its duplicates first."""
    if max_candidates is None:
        return [[cell.index for cell in cells]]
    candidates_by_baseline: defaultdict[int, list[int]] = defaultdict(list)
    duplicates_by_baseline: defaultdict[int, list[int]] = defaultdict(list)
    for cell in cells:
        if cell.baseline_index is not None:
            by_baseline = duplicates_by_baseline if cell.replica > 1 else candidates_by_baseline
            by_baseline[cell.baseline_index].append(cell.index)
    baselines = candidates_by_baseline.keys() | duplicates_by_baseline.keys()
    alone = [cell.index for cell in cells if cell.baseline_index is None and cell.index not in baselines]
    blocks: list[list[int]] = []
    for baseline in sorted(baselines):
        shared = [baseline, *duplicates_by_baseline[baseline]]
        parts = _parts(candidates_by_baseline[baseline], max_candidates, f"{key}{baseline}/")
        blocks += [[*shared, *part] for part in parts] or [shared]
    return blocks + _parts(alone, max_candidates, f"{key}alone/")


def _parts(indexes: Sequence[int], most: int, key: str) -> list[list[int]]:
    """Split cells into as few parts of at most `most` as possible, whose sizes differ by at most one."""
    order, count = shuffled(indexes, key), -(-len(indexes) // most)
    return [order[part::count] for part in range(count)]


def balanced_order(cells: Sequence[int], *, round: int, key: str) -> list[int]:
    """Return the order of a block in one round, balanced over the rounds of a Williams design.

    For even n, over n rounds every cell directly follows every other exactly once and has each place once.
    For odd n, over 2n rounds it follows every other exactly twice; each place comes once in n rounds
    (Williams, *Experimental designs balanced for the estimation of residual effects of treatments*, 1949).
    Rows and labels are drawn again for each design.
    """
    size = len(cells)
    design, row = divmod(round - 1, size if size % 2 == 0 else 2 * size)
    half, row = divmod(row, size)
    drawn = f"{key}{design}/"
    shift = shuffled(range(size), f"{drawn}{half}/rows/")[row]
    zigzag = [place // 2 + 1 if place % 2 else -(place // 2) for place in range(size)]
    labels = shuffled(cells, f"{drawn}labels/")
    return [labels[(step + shift) % size] for step in (reversed(zigzag) if half else zigzag)]


def shuffled(numbers: Iterable[int], key: str) -> list[int]:
    """Return the numbers sorted by SHA-256(key + number): the same order on every machine."""
    prefix = hashlib.sha256(key.encode())

    def place(number: int) -> tuple[bytes, int]:
        digest = prefix.copy()
        digest.update(b"%d" % number)
        return digest.digest(), number

    return sorted(numbers, key=place)
