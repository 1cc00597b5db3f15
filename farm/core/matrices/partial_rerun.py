"""A part of a matrix, such that what is compared stays together."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from farm.core.matrices.matrix import Cell, CellAssignment, Expansion


def compared_cells(cells: Sequence[Cell], wanted: Collection[int]) -> set[int]:
    """Return the indexes of all cells that are compared with a wanted one, itself included.

    A cell comes with its baseline, and a baseline with all that are compared to it, its replica among them: a
    speedup pairs rounds of one block.
    """
    by_index = {cell.index: cell for cell in cells}
    baselines = {index if by_index[index].is_baseline else by_index[index].baseline_index for index in wanted}
    failed_baselines = {index for index in wanted if by_index[index].is_baseline}
    return {
        cell.index
        for cell in cells
        if cell.index in wanted
        or cell.index in baselines
        or cell.baseline_index in failed_baselines
        or (cell.replica > 1 and cell.baseline_index in baselines)
    }


def select_cells(expansion: Expansion, indexes: Collection[int]) -> Expansion:
    """Return an expansion of the selected cells only, renumbered; rejected cells stay."""
    assignments: list[CellAssignment] = []
    first = 0
    for assignment in expansion.assignments:
        left = tuple(
            number for place, number in enumerate(assignment.slots) if assignment.first + place in indexes
        )
        if left:
            assignments.append(replace(assignment, first=first, slots=left))
            first += len(left)
    return replace(expansion, assignments=tuple(assignments))
