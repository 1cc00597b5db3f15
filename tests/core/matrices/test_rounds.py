"""The cells that further rounds are for."""

from dataclasses import dataclass

from farm.core.base.ids import CellId
from farm.core.matrices.rounds import cells_of_further_rounds, cells_to_decide


@dataclass(frozen=True)
class Cell:
    cell_id: CellId
    index: int
    baseline_index: int | None = None
    replica: int = 1


def cells(*rows: tuple[int | None, int]) -> list[Cell]:
    return [Cell(CellId(100 + index), index, *row) for index, row in enumerate(rows)]


def test_a_baseline_and_its_duplicate_go_on_while_any_candidate_does() -> None:
    own = cells((None, 1), (0, 2), (0, 1), (0, 1), (None, 1), (4, 1))
    assert [cell.index for cell in cells_to_decide(own)] == [2, 3, 5]
    assert [cell.index for cell in cells_of_further_rounds(own, {CellId(102)})] == [0, 1, 3, 4, 5]
    assert [cell.index for cell in cells_of_further_rounds(own, {CellId(102), CellId(103)})] == [4, 5]
    assert cells_of_further_rounds(own, {CellId(102), CellId(103), CellId(105)}) == []


def test_a_duplicate_decides_only_where_it_is_alone_with_its_baseline() -> None:
    alone = cells((None, 1), (0, 2))
    assert [cell.index for cell in cells_to_decide(alone)] == [1]
    assert [cell.index for cell in cells_of_further_rounds(alone, ())] == [0, 1]


def test_cells_that_are_compared_with_nothing_get_no_further_rounds() -> None:
    own = cells((None, 1), (0, 1), (None, 1))
    assert [cell.index for cell in cells_of_further_rounds(own, ())] == [0, 1]
