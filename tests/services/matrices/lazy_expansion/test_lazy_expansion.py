"""A large matrix is queued in pieces, and nobody can tell but by the time it takes."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.errors import Conflict
from farm.core.matrices.matrix import MatrixSpec
from farm.core.runs.evidence import Evidence
from farm.database.transaction import Tx, bind_tx
from farm.services.checks.device_detail import device_detail
from farm.services.devices.admin import retire, retirement_plan
from farm.services.hosts.admin import retirement_plan as host_retirement_plan
from farm.services.hosts.views import host_detail
from farm.services.matrices.lazy_expansion import (
    RowBatch,
    RowBuilder,
    expand_small,
    open_row_builder,
    put_row_batch,
)
from farm.services.matrices.submit import prepare_matrix, store_if_unchanged
from farm.store.files.artifacts import needed_digests
from farm.store.matrices.lazy_expansion import next_batches, next_matrix
from farm.store.results.evidence import expirable_reports
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.support.farm.direct_calls import cancel_matrix, rerun_matrix, submit_matrix, submit_unexpanded
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, plan_of

AXES = {
    "model": "mobilenet_v2",
    "precision": ["float32", "int8-core"],
    "format": "torchscript",
    "backend": "cpu",
    "warmup": [1, 2, 3],
}
CELLS, ROUNDS, PHONES = 6, 2, 2
JOBS = CELLS * ROUNDS * PHONES


def spec(**changed: Any) -> MatrixSpec:
    return matrix_spec(
        {
            "name": "wide",
            "harness": "speed_benchmark_torch",
            "axes": AXES,
            "settings": {"iter": 5},
            "devices": {"virtual": True},
            "rounds": ROUNDS,
            "baseline": {"precision": "float32"},
            "seed": 7,
            **changed,
        }
    )


def submit(farm: FarmRig, *, inline: bool = False, actor: str = "user", **changed: Any) -> MatrixId:
    """A matrix that is queued in pieces, however small, unless it is queued at once."""
    store = submit_matrix if inline else submit_unexpanded
    return farm.write(bind_tx(store, now=farm.clock.now(), actor=actor), spec(**changed))


def next_chunk(farm: FarmRig, matrix_id: MatrixId, jobs: int) -> tuple[RowBuilder, RowBatch]:
    builder = farm.read(open_row_builder, matrix_id)
    assert builder is not None
    return builder, builder.build(farm.read(next_batches, matrix_id, jobs=jobs))


def unfold(farm: FarmRig, matrix_id: MatrixId, *, jobs: int = 4, chunks: int | None = None) -> int:
    """Queue so many chunks, or all that are left, each by a process of its own; how many those were."""
    done = 0
    while done != chunks and farm.read(next_batches, matrix_id, jobs=jobs):
        builder, chunk = next_chunk(farm, matrix_id, jobs)
        assert farm.write(bind_tx(put_row_batch, now=farm.clock.now()), builder, chunk)
        done += 1
    return done


def queue_of(farm: FarmRig, matrix_id: MatrixId, device: str) -> list[tuple[str, int, int]]:
    """What a phone is to run, in its order: label, round, and turn counted from the first."""
    rows = farm.rows(
        "SELECT c.label, j.round, j.virtual_time FROM jobs j JOIN cells c ON c.cell_id = j.cell_id"
        " WHERE j.matrix_id = :matrix AND j.device_id = :device"
        " ORDER BY j.priority DESC, j.virtual_time, j.job_id",
        matrix=matrix_id,
        device=device,
    )
    return [(row["label"], row["round"], row["virtual_time"] - rows[0]["virtual_time"]) for row in rows]


def cells_of(farm: FarmRig, matrix_id: MatrixId) -> list[dict[str, Any]]:
    sql = (
        "SELECT cell_index, device_id, variant_id, program_id, backend, settings, replica, label,"
        " baseline_index FROM cells WHERE matrix_id = :matrix ORDER BY cell_index"
    )
    return farm.rows(sql, matrix=matrix_id)


@pytest.mark.parametrize("jobs", [1, 4, 7, 1000])
def test_in_pieces_it_comes_to_the_same_cells_in_the_same_order(
    farm: FarmRig, host: HostRig, jobs: int
) -> None:
    at_once = submit(farm, inline=True, actor="ann", aa=True)
    in_pieces = submit(farm, actor="ben", aa=True)
    unfold(farm, in_pieces, jobs=jobs)
    assert cells_of(farm, in_pieces) == cells_of(farm, at_once)
    for phone in host.phones:
        assert queue_of(farm, in_pieces, phone) == queue_of(farm, at_once, phone)
    assert farm.rows("SELECT * FROM job_templates") == farm.rows("SELECT * FROM lazy_expansions") == []
    told = farm.rows("SELECT subject_id, cause FROM events WHERE kind = 'matrix_submitted'")
    assert len({row["cause"] for row in told}) == 1


@pytest.mark.fault(54)
def test_every_phone_has_work_before_one_has_all_of_it(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=3, chunks=2)
    assert [len(queue_of(farm, matrix_id, phone)) for phone in host.phones] == [4, 4]
    assert len(host.exchange().assignments) == PHONES


@pytest.mark.invariant("I13")
def test_a_matrix_whose_queued_jobs_are_done_is_not_finished_before_the_others(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=4, chunks=2)
    assert host.run() == 8
    view = farm.matrix(matrix_id)
    assert (view.state, view.finished_at, view.not_queued) == ("running", None, JOBS - 8)
    unfold(farm, matrix_id)
    host.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": JOBS}


def test_phones_that_run_while_it_is_unfolded_keep_to_the_order(farm: FarmRig, host: HostRig) -> None:
    whole = submit(farm, inline=True, actor="ann")
    expected = {phone: [label for label, _, _ in queue_of(farm, whole, phone)] for phone in host.phones}
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="ann"), whole)
    matrix_id = submit(farm)
    while unfold(farm, matrix_id, jobs=2, chunks=1):
        host.run(limit=4)
    host.run()
    for phone in host.phones:
        ran = farm.rows(
            "SELECT c.label FROM attempts a JOIN jobs j ON j.job_id = a.job_id"
            " JOIN cells c ON c.cell_id = j.cell_id"
            " WHERE j.matrix_id = :matrix AND a.device_id = :device ORDER BY a.attempt_id",
            matrix=matrix_id,
            device=phone,
        )
        assert [row["label"] for row in ran] == expected[phone]


class _Killed(Exception):
    pass


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_is_killed_leaves_no_half_piece(farm: FarmRig, host: HostRig, moment: str) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=4, chunks=2)
    before = farm.rows("SELECT * FROM lazy_expansions ORDER BY device_id"), cells_of(farm, matrix_id)
    builder, chunk = next_chunk(farm, matrix_id, 4)
    if moment == "before":
        # Its cells are stored and its cursors moved when the jobs turn out to lack a cell.
        lacking = [(device, job._replace(cell_index=9999), time) for device, job, time in chunk.jobs]
        chunk = replace(chunk, jobs=lacking)

    def killed(connection: Connection) -> None:
        put_row_batch(Tx(connection, farm.clock.now()), builder, chunk)
        raise _Killed

    with pytest.raises((_Killed, KeyError)):
        farm.write(killed)
    assert (
        farm.rows("SELECT * FROM lazy_expansions ORDER BY device_id"),
        cells_of(farm, matrix_id),
    ) == before
    unfold(farm, matrix_id)
    times = Counter(
        (label, phone) for phone in host.phones for label, _, _ in queue_of(farm, matrix_id, phone)
    )
    assert set(times.values()) == {ROUNDS}
    assert len(times) == CELLS * PHONES


def test_of_two_processes_at_one_piece_the_second_does_nothing(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    one, other = next_chunk(farm, matrix_id, 4), next_chunk(farm, matrix_id, 9)
    assert farm.write(bind_tx(put_row_batch, now=farm.clock.now()), *one)
    there = cells_of(farm, matrix_id), queue_of(farm, matrix_id, "phone-1")
    assert not farm.write(bind_tx(put_row_batch, now=farm.clock.now()), *other)
    assert not farm.write(bind_tx(put_row_batch, now=farm.clock.now()), *one)
    assert (cells_of(farm, matrix_id), queue_of(farm, matrix_id, "phone-1")) == there
    unfold(farm, matrix_id)
    assert not farm.write(bind_tx(put_row_batch, now=farm.clock.now()), *one)
    assert farm.matrix(matrix_id).jobs == JOBS


@pytest.mark.invariant("I16")
def test_once_it_is_cancelled_nothing_more_is_queued(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=4, chunks=2)
    under_way = next_chunk(farm, matrix_id, 4)
    told = farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id)
    assert (told.queued, told.active, told.finished) == (JOBS, 0, 0)
    assert not farm.write(bind_tx(put_row_batch, now=farm.clock.now()), *under_way)
    assert (farm.read(next_matrix), farm.read(open_row_builder, matrix_id)) == (None, None)
    assert host.exchange().assignments == ()
    view = farm.matrix(matrix_id)
    assert (view.state, view.not_queued, view.cells) == ("cancelled", 0, CELLS * PHONES)
    assert view.jobs_by_outcome == {"cancelled": JOBS}
    again = farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id)
    assert (again.queued, again.active) == (0, 0)
    (event,) = farm.rows("SELECT cause FROM events WHERE kind = 'matrix_cancelled'")
    assert event["cause"] == f"all devices: {JOBS} queued and 0 active jobs"


@pytest.mark.invariant("I16")
def test_one_phone_of_it_is_cancelled_before_it_has_a_job(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    told = farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id, device="phone-2")
    assert told.queued == CELLS * ROUNDS
    unfold(farm, matrix_id)
    assert (len(queue_of(farm, matrix_id, "phone-1")), queue_of(farm, matrix_id, "phone-2")) == (12, [])
    host.run()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 12, "cancelled": 12}


@pytest.mark.invariant("I14")
def test_a_phone_that_is_retired_gets_none_of_what_was_to_come(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=4, chunks=2)
    plan = farm.read(retirement_plan, "phone-2")
    assert (plan.queued_jobs, plan.matrices) == (CELLS * ROUNDS, (matrix_id,))
    of_host = farm.read(host_retirement_plan, host.host_id)
    assert (of_host.queued_jobs, of_host.matrices) == (JOBS, (matrix_id,))
    assert farm.read(device_detail, "phone-1").queued_jobs == CELLS * ROUNDS
    assert farm.read(host_detail, host.host_id).queued_jobs == JOBS
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-2", OperatorRequest(by="ann", reason="broken"))
    unfold(farm, matrix_id)
    assert len(queue_of(farm, matrix_id, "phone-2")) == 4
    assert farm.matrix(matrix_id).jobs_by_outcome == {"queued": 12, "cancelled": 12}
    (event,) = farm.rows("SELECT actor, subject_id, cause FROM events WHERE kind = 'matrix_cancelled'")
    assert (event["actor"], event["subject_id"]) == ("user:ann", str(matrix_id))
    assert event["cause"] == "phone-2: 8 jobs that were not queued yet, because it was retired"


def test_what_failed_is_not_run_again_before_all_is_queued(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    with pytest.raises(Conflict, match="still being queued"):
        farm.write(bind_tx(rerun_matrix, now=farm.clock.now(), actor="user"), matrix_id, failed=True)
    again = farm.write(bind_tx(rerun_matrix, now=farm.clock.now(), actor="user"), matrix_id, failed=False)
    assert farm.matrix(again).jobs == JOBS


def test_cells_that_were_never_queued_count_as_failed(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, rounds=1)
    unfold(farm, matrix_id, jobs=CELLS, chunks=1)
    assert host.run() == CELLS
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id)
    again = farm.write(bind_tx(rerun_matrix, now=farm.clock.now(), actor="user"), matrix_id, failed=True)
    assert {row["device_id"] for row in cells_of(farm, again)} == {"phone-2"}
    assert farm.matrix(again).cells == CELLS


def test_ones_next_matrix_queues_behind_what_is_not_queued_yet(farm: FarmRig, host: HostRig) -> None:
    first = submit(farm, actor="user:ann")
    second = submit(farm, inline=True, actor="user:ann")
    unfold(farm, first)
    turns = "SELECT min(virtual_time) AS low, max(virtual_time) AS high FROM jobs WHERE matrix_id = :matrix"
    (one,), (two,) = farm.rows(turns, matrix=first), farm.rows(turns, matrix=second)
    assert two["low"] > one["high"]


def test_files_of_cells_to_come_are_kept(farm: FarmRig, host: HostRig) -> None:
    submit(farm)
    needed = farm.read(needed_digests)
    models = farm.rows("SELECT digest FROM variants")
    assert {row["digest"] for row in models} <= needed
    assert needed & {row["digest"] for row in farm.rows("SELECT digest FROM program_files")}


def test_output_of_a_matrix_stays_while_some_of_it_is_to_come(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=2, chunks=1)
    assert host.run() == 2
    assert going_output(farm) == 0
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id)
    assert going_output(farm) == 2


def going_output(farm: FarmRig) -> int:
    """How many reports of benchmarks a rule of retention might let go."""
    of_benchmarks = farm.rows(
        "SELECT e.evidence_id FROM evidence e JOIN attempts a ON a.attempt_id = e.attempt_id"
        " JOIN jobs j ON j.job_id = a.job_id WHERE j.kind = 'benchmark'"
    )
    going = farm.read(lambda connection: [each.evidence_id for each in expirable_reports(connection)])
    return len(set(going) & {row["evidence_id"] for row in of_benchmarks})


@pytest.mark.fault(53)
def test_work_that_kills_phones_is_ended_where_it_is_queued_later(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, axes={**AXES, "warmup": 1}, baseline=None)
    unfold(farm, matrix_id, jobs=2, chunks=2)
    poison = farm.rows("SELECT digest FROM variants WHERE name LIKE '%int8-core%'")[0]["digest"]

    def answer(assignment: Assignment) -> Evidence:
        if poison not in {file.digest for file in plan_of(assignment).files}:
            return good_evidence(assignment)
        gone = device_trouble(assignment)
        assert gone.error is not None
        return replace(gone, error=replace(gone.error, code="device.rebooted"))

    host.run(answer)
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 2, "failed": 2, "queued": 4}
    unfold(farm, matrix_id)
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 2, "failed": 4, "queued": 2}


def test_what_changed_since_it_was_prepared_is_noticed(farm: FarmRig, host: HostRig) -> None:
    wanted = spec()
    ready = farm.read(prepare_matrix, wanted)
    host.plug_in("phone-3")
    host.exchange()
    assert farm.write(bind_tx(store_if_unchanged, now=farm.clock.now(), actor="user"), ready) is None
    ready = farm.read(prepare_matrix, wanted)
    matrix_id = farm.write(bind_tx(store_if_unchanged, now=farm.clock.now(), actor="user"), ready)
    assert matrix_id is not None
    farm.write(bind_tx(expand_small, now=farm.clock.now()), matrix_id)
    assert {row["device_id"] for row in cells_of(farm, matrix_id)} == {"phone-1", "phone-2", "phone-3"}
