"""A large matrix over HTTP: answered before its jobs are queued, and told page by page."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.api.agents.expansion_worker import ExpansionWorker
from farm.api.routes import matrices as routes
from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.database.tables import job_templates
from farm.database.transaction import Tx, bind_tx
from farm.services.matrices.cancel import cancel_chunk
from farm.services.matrices.lazy_expansion import open_row_builder, put_row_batch
from farm.store.matrices.lazy_expansion import next_batches, remaining_jobs
from farm.ticks import run_reminders
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.matrices.plans import CancellationView
from tests.support.farm.api_server import served_farm
from tests.support.farm.direct_calls import submit_unexpanded
from tests.support.farm.service_fixture import FarmRig, checked_rig

CELLS, ROUNDS = 21, 100
SPEC = {
    "name": "large",
    "harness": "speed_benchmark_torch",
    "axes": {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "backend": "cpu",
        "warmup": list(range(CELLS)),
    },
    "devices": {"virtual": True},
    "rounds": ROUNDS,
    "seed": 7,
}
#: As often as a farm is asked before it must be done; each question takes it a while.
TRIES = 1000


def furnish(rig: FarmRig) -> None:
    rig.variant("float32")
    host = rig.host()
    for name in ("phone-1", "phone-2"):
        host.plug_in(name)
    host.earn_health()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FarmClient]:
    rig = FarmRig(tmp_path)
    furnish(rig)
    rig.close()
    with served_farm(tmp_path) as url, FarmClient(url) as made:
        yield made


def test_who_submits_it_is_answered_and_its_jobs_follow_on_pages(client: FarmClient) -> None:
    submitted = client.submit_matrix({**SPEC, "devices": {"device": "phone-1"}})
    assert (submitted.jobs, submitted.cells) == (CELLS * ROUNDS, CELLS)
    for _ in range(TRIES):
        if not client.matrix(submitted.matrix_id).not_queued:
            break
    pages = list(client.job_pages(submitted.matrix_id, limit=500))
    assert [len(page) for page in pages] == [500, 500, 500, 500, 100]
    everything = client.jobs(submitted.matrix_id)
    assert [job for page in pages for job in page] == everything
    assert [job.round for job in everything] == sorted(job.round for job in everything)
    assert set(Counter((job.label, job.round) for job in everything).values()) == {1}


def test_a_page_that_is_full_to_the_last_job_is_followed_by_an_empty_one(client: FarmClient) -> None:
    submitted = client.submit_matrix({**SPEC, "rounds": 5})
    pages = list(client.job_pages(submitted.matrix_id, limit=CELLS * 5))
    assert [len(page) for page in pages] == [CELLS * 5, CELLS * 5, 0]
    assert len(client.jobs(submitted.matrix_id)) == CELLS * 5 * 2


def test_cells_are_told_on_pages_too(client: FarmClient) -> None:
    axes = {**SPEC["axes"], "warmup": list(range(300)), "iter": [1, 2, 3, 4]}  # type: ignore[dict-item]
    submitted = client.submit_matrix({**SPEC, "axes": axes, "rounds": 1})
    for _ in range(TRIES):
        if not client.matrix(submitted.matrix_id).not_queued:
            break
    shown = client.matrix(submitted.matrix_id)
    assert (shown.cells, len(shown.cell_list)) == (2400, 2000)
    cells = list(client.cells(submitted.matrix_id))
    assert [cell.index for cell in cells] == list(range(2400))
    assert cells[:2000] == list(shown.cell_list)


def test_a_cancellation_that_takes_long_is_answered_in_parts_until_it_is_done(
    client: FarmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = client.submit_matrix({**SPEC, "rounds": 2})
    for _ in range(TRIES):
        if not client.matrix(submitted.matrix_id).not_queued:
            break
    cancelled: list[CancellationView] = []

    def cancel_ten(tx: Tx, matrix_id: MatrixId, *, device: str | None = None) -> CancellationView:
        cancelled.append(cancel_chunk(tx, matrix_id, device=device, limit=10))
        return cancelled[-1]

    monkeypatch.setattr(routes, "cancel_chunk", cancel_ten)
    monkeypatch.setattr(routes, "ANSWER_CANCEL_WITHIN_S", 0.0)
    view = client.cancel_matrix(submitted.matrix_id)
    jobs = CELLS * 2 * 2
    assert [part.is_done for part in cancelled] == [False] * (jobs // 10) + [True]
    assert view == cancelled[-1]
    assert (view.queued + view.active, view.finished) == (jobs, 0)


@pytest.fixture
def rig(any_database_url: str, tmp_path: Path) -> Iterator[FarmRig]:
    with checked_rig(tmp_path, any_database_url) as made:
        furnish(made)
        yield made


def left_over(rig: FarmRig, **changed: object) -> MatrixId:
    """A matrix that a process took that is gone."""
    spec = matrix_spec({**SPEC, "rounds": 2, **changed})
    return rig.write(bind_tx(submit_unexpanded, now=rig.clock.now(), actor="user"), spec)


def expansion_worker(rig: FarmRig) -> ExpansionWorker:
    return ExpansionWorker(rig.database, rig.clock, chunk_jobs=10)


def times(rig: FarmRig, matrix_id: MatrixId) -> Counter[tuple[int, int]]:
    sql = "SELECT cell_id, round FROM jobs WHERE matrix_id = :matrix"
    return Counter((row["cell_id"], row["round"]) for row in rig.rows(sql, matrix=matrix_id))


@pytest.mark.fault(43)
def test_processes_that_expand_at_once_queue_everything_once(rig: FarmRig) -> None:
    first, second = left_over(rig), left_over(rig)

    async def at_once() -> None:
        await asyncio.gather(expansion_worker(rig)(), expansion_worker(rig)(), expansion_worker(rig)())

    asyncio.run(at_once())
    for matrix_id in (first, second):
        assert rig.read(remaining_jobs, matrix_id) == []
        assert set(times(rig, matrix_id).values()) == {1}
        assert times(rig, matrix_id).total() == CELLS * 2 * 2


def test_what_a_process_left_half_done_another_goes_on_with(rig: FarmRig) -> None:
    matrix_id = left_over(rig)
    builder = rig.read(open_row_builder, matrix_id)
    assert builder is not None
    chunk = builder.build(rig.read(next_batches, matrix_id, jobs=10))
    assert rig.write(bind_tx(put_row_batch, now=rig.clock.now()), builder, chunk)
    before = set(times(rig, matrix_id))
    asyncio.run(expansion_worker(rig)())
    assert before < set(times(rig, matrix_id))
    assert set(times(rig, matrix_id).values()) == {1}
    assert times(rig, matrix_id).total() == CELLS * 2 * 2


def test_a_matrix_that_cannot_be_unfolded_keeps_no_other_waiting(rig: FarmRig) -> None:
    broken, sound = left_over(rig, rounds=1), left_over(rig)
    body = rig.read(get_body, broken)
    rig.write(put_body, broken, b"of another release")
    asyncio.run(expansion_worker(rig)())
    assert rig.read(remaining_jobs, sound) == []
    assert times(rig, sound).total() == CELLS * 2 * 2
    assert (times(rig, broken).total(), len(rig.read(remaining_jobs, broken))) == (0, 2)
    rig.write(put_body, broken, body)
    asyncio.run(expansion_worker(rig)())
    assert times(rig, broken).total() == CELLS * 2


def get_body(connection: Connection, matrix_id: MatrixId) -> bytes:
    query = sa.select(job_templates.c.body).where(job_templates.c.matrix_id == matrix_id)
    return connection.execute(query).scalar_one()


def put_body(connection: Connection, matrix_id: MatrixId, body: bytes) -> None:
    connection.execute(job_templates.update().where(job_templates.c.matrix_id == matrix_id).values(body=body))


@pytest.mark.long
def test_a_shorter_matrix_does_not_wait_for_a_longer_one_nor_an_urgent_one_for_any(rig: FarmRig) -> None:
    asked = [(30, 0), (2, 0), (40, 1)]
    long, short, urgent = (left_over(rig, rounds=rounds, priority=priority) for rounds, priority in asked)
    asyncio.run(expansion_worker(rig)())
    last = rig.rows("SELECT matrix_id, max(job_id) AS last FROM jobs WHERE matrix_id > 0 GROUP BY matrix_id")
    assert [row["matrix_id"] for row in sorted(last, key=lambda row: row["last"])] == [urgent, short, long]


def test_only_the_process_whose_turn_it_is_looks_for_what_others_left() -> None:
    async def reminded(*, should_run: bool) -> bool:
        asked, looked = asyncio.Event(), asyncio.Event()

        def turn() -> bool:
            looked.set()
            return should_run

        async with run_reminders(asked, every_s=0.01, should_run=turn):
            await asyncio.wait_for(looked.wait(), 30)
        return asked.is_set()

    assert asyncio.run(reminded(should_run=True))
    assert not asyncio.run(reminded(should_run=False))
