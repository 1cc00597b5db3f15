"""Small blocks of a matrix that is expanded in steps: none is cut, and a bad start repeats its own."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.matrices.blocks import shuffled
from farm.database import tables
from farm.database.transaction import Tx
from farm.services.matrices.lazy_expansion import open_row_builder, put_row_batch
from farm.store.matrices.lazy_expansion import get_job_template, next_batches, pack_job_template
from tests.services.matrices.lazy_expansion.test_lazy_expansion import AXES, CELLS, ROUNDS, submit, unfold
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, torch_output


def test_only_the_block_of_a_bad_start_is_repeated_and_it_is_queued_whole(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm, devices={"device_id": "phone-1"})
    unfold(farm, matrix_id, jobs=1, chunks=1)
    (first,) = host.exchange().assignments
    short = ended(first, torch_output([1000.0] * 4))
    host.report(first.attempt_id, short)
    assert blocks_of(farm, matrix_id) == {(1, 0, 0): 2, (1, 0, 1): 2}
    unfold(farm, matrix_id)
    host.clean(first)
    host.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": CELLS * ROUNDS + 2}
    assert farm.matrix(matrix_id).repeated_blocks == 1


def blocks_of(farm: FarmRig, matrix_id: MatrixId) -> Counter[tuple[int, int, int]]:
    """How many jobs each block has, by round, number and repeat."""
    rows = farm.rows("SELECT round, block, repeat FROM jobs WHERE matrix_id = :matrix", matrix=matrix_id)
    return Counter((row["round"], row["block"], row["repeat"]) for row in rows)


def test_a_batch_ends_where_a_block_does(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(
        farm, axes={**AXES, "warmup": list(range(1, 9))}, baseline={"precision": "float32", "warmup": 1}
    )
    whole = submit(
        farm,
        inline=True,
        axes={**AXES, "warmup": list(range(1, 9))},
        baseline={"precision": "float32", "warmup": 1},
    )
    sizes = blocks_of(farm, whole)
    # One baseline with 15 candidates: three blocks of six on each of two phones.
    assert sizes == {(round, block, 0): 12 for round in (1, 2) for block in (0, 1, 2)}
    while unfold(farm, matrix_id, jobs=5, chunks=1):
        queued = farm.rows(
            "SELECT count(*) AS jobs FROM jobs WHERE matrix_id = :matrix GROUP BY device_id, round, block",
            matrix=matrix_id,
        )
        assert {row["jobs"] for row in queued} == {6}
    assert blocks_of(farm, matrix_id) == sizes
    places = farm.rows("SELECT DISTINCT place FROM jobs WHERE matrix_id = :matrix", matrix=matrix_id)
    assert {row["place"] for row in places} == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("queued", [0, 3, 7])
def test_a_matrix_of_before_small_blocks_goes_on_as_it_was_planned(
    farm: FarmRig, host: HostRig, queued: int
) -> None:
    matrix_id = submit(farm, devices={"device_id": "phone-1"})
    expected = older(farm, matrix_id, queued=queued)
    unfold(farm, matrix_id, jobs=2)
    assert [(row["cell_index"], row["round"]) for row in planned(farm, matrix_id)] == expected
    assert set(blocks_of(farm, matrix_id)) == {(1, 0, 0), (2, 0, 0)}
    # Its blocks are rounds: one is repeated with all of its cells.
    bad = iter([True])
    host.run(lambda run: ended(run, torch_output([1000.0] * 4)) if next(bad, False) else good_evidence(run))
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": CELLS * (ROUNDS + 1)}


def older(farm: FarmRig, matrix_id: MatrixId, *, queued: int) -> list[tuple[int, int]]:
    """Make a stored matrix one of the release before, with some jobs queued; return all of its jobs."""
    template, _ = farm.read(get_job_template, matrix_id)
    parts = tuple(replace(part, starts=None) for part in template.parts)
    packed = pack_job_template(replace(template, parts=parts, block_candidates=None))
    order = [
        (index, round)
        for round in range(1, ROUNDS + 1)
        for index in shuffled(range(CELLS), f"7/phone-1/{round}/0/")
    ]

    def change(connection: Connection) -> None:
        connection.execute(tables.job_templates.update().values(body=packed))
        connection.execute(tables.matrices.update().values(block_candidates=None))
        connection.execute(tables.lazy_expansions.update().values(jobs=len(order)))
        builder = open_row_builder(connection, matrix_id)
        assert builder is not None
        (batch,) = builder.build(next_batches(connection, matrix_id, jobs=len(order))).batches
        rows = builder.build([batch])
        cut = replace(batch, stop=queued, is_last=False)
        if queued:
            jobs = [(device, job, time) for device, job, time in rows.jobs][:queued]
            put_row_batch(Tx(connection, farm.clock.now()), builder, replace(rows, batches=[cut], jobs=jobs))

    farm.write(change)
    return order


def planned(farm: FarmRig, matrix_id: MatrixId) -> list[dict[str, Any]]:
    return farm.rows(
        "SELECT c.cell_index, j.round, j.place FROM jobs j JOIN cells c ON c.cell_id = j.cell_id"
        " WHERE j.matrix_id = :matrix ORDER BY j.job_id",
        matrix=matrix_id,
    )
