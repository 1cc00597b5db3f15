"""Rounds of a matrix that grows: looks are taken as rounds are measured, until its cells are decided."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from farm.core.base.ids import CellId
from farm.core.matrices.blocks import ComparableCell

#: Usable rounds at which a look at a cell is taken, within the bounds of its matrix.
LOOKS_AT = (5, 8, 12, 20, 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialRounds:
    """Rounds are added until a cell is decided, its interval is narrow enough, or a gate has an answer."""

    at_least: int = 5
    at_most: int = 40
    #: The fraction that intervals may reach to each side, or a gate's margin; None: until there is a verdict.
    until: float | None = None
    not_slower: float | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the least and the largest number of rounds."""
        return self.at_least, self.at_most

    @property
    def schedule(self) -> tuple[int, ...]:
        """Return the usable rounds at which looks are taken, the last being all that are allowed."""
        between = (rounds for rounds in LOOKS_AT if self.at_least < rounds < self.at_most)
        return (self.at_least, *between, self.at_most)


class StoredCell(ComparableCell, Protocol):
    """A cell of one device, as it is stored."""

    @property
    def cell_id(self) -> CellId: ...


CellT = TypeVar("CellT", bound=StoredCell)


def cells_to_decide(cells: Sequence[CellT]) -> list[CellT]:
    """Return the cells of a device that a growing matrix is about: those with a baseline.

    The duplicate of a baseline gets as many rounds as that, and decides nothing, unless it is all there is.
    """
    compared = {cell.baseline_index for cell in cells if cell.replica == 1}
    return [
        cell
        for cell in cells
        if cell.baseline_index is not None and (cell.replica == 1 or cell.baseline_index not in compared)
    ]


def cells_of_further_rounds(cells: Sequence[CellT], stopped: Collection[CellId]) -> list[CellT]:
    """Return the cells of further rounds of a device: undecided ones, their baselines and duplicates."""
    open_cells = [cell for cell in cells_to_decide(cells) if cell.cell_id not in stopped]
    own, baselines = {cell.index for cell in open_cells}, {cell.baseline_index for cell in open_cells}
    return [
        cell
        for cell in cells
        if cell.index in own
        or cell.index in baselines
        or (cell.replica > 1 and cell.baseline_index in baselines)
    ]
