"""A device is shared in turns: nobody's flood holds up the others, and nobody overtakes themselves."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.jobs.fair_share import first_virtual_time, round_virtual_time

TURNS = st.one_of(st.none(), st.integers(0, 10**9))
CELLS = st.integers(1, 50)
ROUNDS = st.integers(1, 20)


@given(head=TURNS, tail=TURNS)
def test_what_comes_joins_beside_the_next_and_behind_its_own(head: int | None, tail: int | None) -> None:
    first = first_virtual_time(head, tail)
    assert first >= (head or 0)
    assert tail is None or first > tail
    assert first in (0, head, None if tail is None else tail + 1)


@given(first=st.integers(0, 10**9), rounds=ROUNDS, cells=CELLS)
def test_rounds_keep_their_order_and_count_jobs(first: int, rounds: int, cells: int) -> None:
    turns = [
        round_virtual_time(first, round_number=number, jobs_per_round=cells)
        for number in range(1, rounds + 1)
    ]
    assert turns[0] == first
    assert {later - earlier for earlier, later in pairwise(turns)} <= {cells}


@given(flood=CELLS, rounds=st.integers(2, 20), small=st.integers(1, 10), small_rounds=ROUNDS, at=st.data())
@pytest.mark.invariant("I13")
@pytest.mark.fault(54)
def test_a_small_matrix_waits_for_one_round_of_a_flood_at_most_before_it_begins(
    flood: int, rounds: int, small: int, small_rounds: int, at: st.DataObject
) -> None:
    """And between its own rounds for as many jobs as it has itself, and one round."""
    begun = at.draw(st.integers(1, rounds))
    queue = [
        (round_virtual_time(0, round_number=n, jobs_per_round=flood), 0)
        for n in range(begun, rounds + 1)
        for _ in range(flood)
    ]
    first = first_virtual_time(queue[0][0], None)
    own = [
        (round_virtual_time(first, round_number=n, jobs_per_round=small), 1)
        for n in range(1, small_rounds + 1)
        for _ in range(small)
    ]
    order = [who for _, who in sorted([*queue, *own])]
    assert order.index(1) <= flood
    last = len(order) - order[::-1].index(1)
    assert last <= 2 * len(own) + 2 * flood
