"""A round of many cells is made of small blocks: each is compared within itself, and repeated by itself."""

from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.matrices.blocks import shuffled
from farm.core.runs.evidence import Evidence
from farm.database import tables
from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_summaries
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.round_growth import find_next_growth, grow_next
from farm.wire.agents.protocol import Assignment
from tests.services.results.test_round_growth import measure, run, submit
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, torch_output

#: Two blocks of six candidates, and the baseline in both.
CANDIDATES, STARTS = 12, 14


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    farm.variant()
    return farm.healthy_host("phone-1")


def blocks(farm: FarmRig, matrix_id: MatrixId) -> Counter[tuple[int, int, int]]:
    """How many jobs each block has, by round, number and repeat."""
    rows = farm.rows("SELECT round, block, repeat FROM jobs WHERE matrix_id = :matrix", matrix=matrix_id)
    return Counter((row["round"], row["block"], row["repeat"]) for row in rows)


def one_bad_start(number: int) -> Callable[[Assignment], Evidence]:
    """Answer as a good device; the start of that number, from 0, is short of samples."""
    good, starts = measure({}), iter(range(1_000_000))

    def answer(assignment: Assignment) -> Evidence:
        return ended(assignment, torch_output([1000.0])) if next(starts) == number else good(assignment)

    return answer


@pytest.mark.long
@pytest.mark.parametrize("aa", [False, True])
def test_one_bad_start_of_twelve_candidates_repeats_its_block_alone(
    farm: FarmRig, host: HostRig, aa: bool
) -> None:
    matrix_id = submit(farm, warmups=CANDIDATES, rounds=5, aa=aa)
    size = STARTS // 2 + aa
    planned = {(round, block, 0): size for round in range(1, 6) for block in (0, 1)}
    assert blocks(farm, matrix_id) == planned
    host.run(one_bad_start(3 * size + 2))
    again = {key: jobs for key, jobs in blocks(farm, matrix_id).items() if key not in planned}
    ((round, block, repeat),) = again
    assert (round, repeat, again[round, block, repeat]) == (2, 1, size)
    view = farm.matrix(matrix_id)
    assert view.repeated_blocks == 1
    assert view.jobs_by_outcome == {"succeeded": 5 * 2 * size + size}
    comparisons = [each for each in farm.speedups(matrix_id) if not each.aa]
    assert [(each.rounds, each.pairs) for each in comparisons] == [(5, 5)] * CANDIDATES
    # What is compared ran in one block; of the pairs there only the bad block was measured twice.
    assert sorted(each.excluded for each in comparisons) == [0] * 6 + [1] * 6
    if aa:
        (duplicates,) = (each for each in farm.speedups(matrix_id) if each.aa)
        assert (duplicates.rounds, duplicates.pairs, duplicates.excluded) == (5, 10, 1)


def test_the_time_of_a_baseline_is_over_all_of_its_starts_and_both_sides_of_a_pair_lie_close(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm, warmups=CANDIDATES, rounds=5)
    host.run(measure({}))
    one = farm.speedups(matrix_id)[0]
    view = farm.read(explain_cell, one.cell_id)
    assert {pair.block_size for pair in view.rounds} == {STARTS // 2}
    assert view.baseline is not None
    assert len(view.baseline.runs) == 10
    assert {(run.round, run.block) for run in view.baseline.runs} == {
        (round, block) for round in range(1, 6) for block in (0, 1)
    }
    cells = {cell.label: cell for cell in farm.matrix(matrix_id).cell_list}
    assert cells["warmup=0"].measurements_by_quality == {"valid": 10}
    assert cells["warmup=1"].measurements_by_quality == {"valid": 5}


def test_what_a_growing_matrix_may_still_add_counts_its_baselines_often(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=CANDIDATES, rounds={"at_least": 5, "at_most": 8, "until": "decided"})
    (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
    assert summary.jobs == 5 * STARTS
    assert farm.matrix(matrix_id).progress[0].max_total == 8 * STARTS


def test_further_rounds_are_blocks_of_those_that_go_on(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=CANDIDATES, rounds={"at_least": 5, "at_most": 8, "until": "decided"})
    undecided = dict.fromkeys(range(1, 4), (1.0, 0.2))
    decided = dict.fromkeys(range(4, CANDIDATES + 1), (2.0, 0.001))
    run(farm, host, undecided | decided, jobs_at_once=3)
    whole = {(round, block, 0): STARTS // 2 for round in range(1, 6) for block in (0, 1)}
    further = {key: jobs for key, jobs in blocks(farm, matrix_id).items() if key not in whole}
    # Two or three candidates with their baseline.
    assert list(further) == [(round, 0, 0) for round in range(6, 9)]
    assert set(further.values()) <= {3, 4}
    assert whole.items() <= blocks(farm, matrix_id).items()
    assert farm.matrix(matrix_id).state == "finished"


@pytest.mark.parametrize("queued", [0, 2, 5])
def test_a_growing_matrix_of_before_small_blocks_goes_on_as_it_was_planned(
    farm: FarmRig, host: HostRig, queued: int
) -> None:
    """Its rounds are counted and perhaps partly queued: none of their jobs is lost or doubled."""
    matrix_id = submit(farm, warmups=2, rounds={"at_least": 5, "at_most": 8, "until": "decided"})
    farm.write(_make_older)
    effects = {1: (1.0, 0.2), 2: (1.0, 0.2)}
    host.run(measure(effects))
    # Look, add rounds, and queue some of their jobs as the older release did: cut anywhere in a round.
    while farm.rows("SELECT jobs FROM round_growths") in ([], [{"jobs": 0}]):
        grow_once(farm)
    assert farm.rows("SELECT jobs FROM round_growths") == [{"jobs": 9}]
    order = [(index, round) for round in (6, 7, 8) for index in shuffled(range(3), f"3/phone-1/{round}/0/")]
    farm.write(lambda connection: _queue_as_before(connection, matrix_id, order[:queued]))
    run(farm, host, effects)
    further = farm.rows(
        "SELECT c.cell_index, j.round FROM jobs j JOIN cells c ON c.cell_id = j.cell_id"
        " WHERE j.matrix_id = :matrix AND j.round > 5 ORDER BY j.job_id",
        matrix=matrix_id,
    )
    assert [(row["cell_index"], row["round"]) for row in further] == order
    assert set(blocks(farm, matrix_id)) == {(round, 0, 0) for round in range(1, 9)}
    assert farm.matrix(matrix_id).state == "finished"


def grow_once(farm: FarmRig) -> None:
    due = farm.read(find_next_growth)
    assert due is not None
    farm.write(bind_tx(grow_next, now=farm.clock.now()), due)


def _make_older(connection: Connection) -> None:
    connection.execute(tables.matrices.update().values(block_candidates=None))
    connection.execute(tables.jobs.update().values(place=None))


def _queue_as_before(connection: Connection, matrix_id: MatrixId, jobs: list[tuple[int, int]]) -> None:
    cells = tables.cells
    for index, round in jobs:
        of_index = cells.select().where(cells.c.matrix_id == matrix_id, cells.c.cell_index == index)
        cell = connection.execute(of_index).one()
        growth = connection.execute(tables.round_growths.select()).one()
        connection.execute(
            tables.jobs.insert().values(
                kind="benchmark",
                device_id=cell.device_id,
                matrix_id=matrix_id,
                cell_id=cell.cell_id,
                round=round,
                repeat=0,
                priority=0,
                virtual_time=growth.virtual_time + 3 * (round - 6),
                state="queued",
                created_at=cell_created(connection, matrix_id),
            )
        )
    connection.execute(tables.round_growths.update().values(queued_jobs=len(jobs)))


def cell_created(connection: Connection, matrix_id: MatrixId) -> object:
    matrices = tables.matrices
    return connection.execute(matrices.select().where(matrices.c.matrix_id == matrix_id)).one().created_at
