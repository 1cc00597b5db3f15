"""Blocks hold what is compared close together, and over the rounds no cell is favoured by its place."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import (
    BLOCK_CANDIDATES,
    BlockPlan,
    PlannedStart,
    balanced_order,
    shuffled,
    start_count_by_cell,
)

PHONE = DeviceId("phone-1")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as far as blocks care."""

    index: int
    baseline_index: int | None = None
    replica: int = 1


def star(candidates: int, *, first: int = 0, aa: bool = False) -> list[Cell]:
    """A baseline with so many candidates, and its duplicate."""
    duplicate = [Cell(first + candidates + 1, first, 2)] if aa else []
    return [Cell(first), *(Cell(first + 1 + number, first) for number in range(candidates)), *duplicate]


def plan_of(cells: list[Cell], *, seed: int = 7, candidates: int | None = BLOCK_CANDIDATES) -> BlockPlan:
    return BlockPlan(cells, device_id=PHONE, seed=seed, max_candidates=candidates)


def rounds_of(plan: BlockPlan, rounds: int, *, first_round: int = 1) -> list[PlannedStart]:
    return list(plan.starts(0, plan.start_count_per_round * rounds, first_round=first_round))


@st.composite
def cell_lists(draw: st.DrawFn) -> list[Cell]:
    """Baselines with candidates and perhaps duplicates, and cells that are compared to nothing."""
    cells: list[Cell] = []
    for candidates in draw(st.lists(st.integers(0, 20), max_size=4)):
        has_duplicate = candidates == 0 or draw(st.booleans())
        cells += star(candidates, first=len(cells), aa=has_duplicate)
    alone = draw(st.integers(0 if cells else 1, 20))
    return cells + [Cell(len(cells) + number) for number in range(alone)]


@given(cell_lists(), st.integers(0, 2**31))
def test_a_candidate_starts_once_a_round_and_its_baseline_in_the_same_block(
    cells: list[Cell], seed: int
) -> None:
    plan = plan_of(cells, seed=seed)
    assert Counter(index for block in plan.blocks for index in block) == start_count_by_cell(
        cells, BLOCK_CANDIDATES
    )
    by_index = {cell.index: cell for cell in cells}
    for block in plan.blocks:
        own = {by_index[index] for index in block}
        assert len(own) == len(block)
        candidates = [cell for cell in own if cell.baseline_index is not None and cell.replica == 1]
        assert len(candidates) <= BLOCK_CANDIDATES
        baselines = {cell.baseline_index for cell in own} - {None}
        assert len(baselines) <= 1
        for baseline in baselines:
            duplicates = {cell for cell in cells if cell.replica > 1 and cell.baseline_index == baseline}
            assert {by_index[baseline], *duplicates} <= own


@given(cell_lists(), st.integers(0, 2**31), st.integers(1, 5))
def test_each_round_is_every_block_once_in_an_order_of_its_own(
    cells: list[Cell], seed: int, first_round: int
) -> None:
    plan = plan_of(cells, seed=seed)
    starts = rounds_of(plan, 3, first_round=first_round)
    assert len(starts) == 3 * plan.start_count_per_round
    for round in range(first_round, first_round + 3):
        own = [start for start in starts if start.round == round]
        for number, block in enumerate(plan.blocks):
            positions = [position for position, start in enumerate(own) if start.block == number]
            assert positions == list(range(positions[0], positions[0] + len(block)))
            assert {own[position].cell_index for position in positions} == set(block)
            assert [own[position].place for position in positions] == list(range(1, len(block) + 1))


@given(cell_lists(), st.integers(0, 2**31), st.data())
def test_wherever_it_is_cut_a_block_is_whole_and_none_is_twice(
    cells: list[Cell], seed: int, data: st.DataObject
) -> None:
    whole = rounds_of(plan_of(cells, seed=seed), 3)
    position, pieces = 0, list[PlannedStart]()
    while position < len(whole):
        stop = data.draw(st.integers(position + 1, len(whole)))
        # Each piece by a process that has seen no other.
        piece = list(plan_of(cells, seed=seed).starts(position, stop))
        assert len(piece) >= stop - position
        position += len(piece)
        pieces += piece
        of_last = (piece[-1].round, piece[-1].block)
        assert of_last not in {(start.round, start.block) for start in whole[position:]}
    assert pieces == whole


def test_one_baseline_with_49_candidates_starts_nine_times_a_round() -> None:
    plan = plan_of(star(49))
    assert sorted(map(len, plan.blocks)) == [6] * 5 + [7] * 4
    assert plan.start_count_per_round == 58
    assert plan_of(star(49, aa=True)).start_count_per_round == 67


def test_what_has_a_baseline_of_its_own_each_is_a_block_of_two() -> None:
    cells = [cell for number in range(25) for cell in star(1, first=2 * number)]
    assert [len(block) for block in plan_of(cells).blocks] == [2] * 25


def test_cells_without_a_baseline_are_in_blocks_as_well() -> None:
    assert sorted(map(len, plan_of([Cell(index) for index in range(20)]).blocks)) == [5, 5, 5, 5]


@given(size=st.integers(1, 11), key=st.text(max_size=20), design=st.integers(0, 3))
def test_over_the_rows_of_a_design_each_cell_follows_each_other_and_has_each_place_equally_often(
    size: int, key: str, design: int
) -> None:
    cells = [10 * number for number in range(size)]
    rows = size if size % 2 == 0 else 2 * size
    orders = [
        balanced_order(cells, round=round, key=key)
        for round in range(design * rows + 1, (design + 1) * rows + 1)
    ]
    assert all(sorted(order) == cells for order in orders)
    places = Counter((place, cell) for order in orders for place, cell in enumerate(order))
    assert set(places.values()) == {rows // size}
    assert len(places) == size * size
    follows = Counter(pair for order in orders for pair in pairwise(order))
    assert len(follows) == size * (size - 1)
    assert len(set(follows.values())) <= 1
    # Of an odd number of cells, each half of the design has each place once by itself.
    half = Counter((place, cell) for order in orders[:size] for place, cell in enumerate(order))
    assert set(half.values()) == {1}


@given(st.permutations(range(7)))
def test_the_order_of_a_block_does_not_depend_on_the_order_of_its_cells(cells: list[int]) -> None:
    assert balanced_order(cells, round=3, key="1/") == balanced_order(range(7), round=3, key="1/")


def test_every_machine_plans_the_same_for_ever() -> None:
    plan = plan_of(star(8, aa=True), seed=1)
    assert plan.blocks == [[0, 9, 2, 6, 7, 8], [0, 9, 1, 4, 3, 5]]
    assert list(plan.starts(0, 6)) == [
        (9, 1, 0, 1),
        (2, 1, 0, 2),
        (0, 1, 0, 3),
        (7, 1, 0, 4),
        (8, 1, 0, 5),
        (6, 1, 0, 6),
    ]


def test_designs_and_blocks_and_devices_have_orders_of_their_own() -> None:
    orders = {
        tuple(balanced_order(range(6), round=round, key=key))
        for round in range(1, 19)
        for key in ("1/phone-1/0/", "1/phone-1/1/", "1/phone-2/0/", "2/phone-1/0/")
    }
    assert len(orders) > 65


def test_a_matrix_without_small_blocks_goes_on_as_it_was_planned() -> None:
    cells = star(11, aa=True)
    starts = rounds_of(plan_of(cells, candidates=None), 2)
    assert [(start.cell_index, start.round) for start in starts] == [
        (index, round) for round in (1, 2) for index in shuffled(range(13), f"7/{PHONE}/{round}/0/")
    ]
    assert {start.block for start in starts} == {0}
    assert start_count_by_cell(cells, None) == dict.fromkeys(range(13), 1)
