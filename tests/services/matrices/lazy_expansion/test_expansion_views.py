"""What lists and pages show of a matrix while it is expanded."""

from farm.database.transaction import bind_tx
from farm.services.jobs.pending_reasons import matrix_waiting
from farm.services.matrices.plan import plan_matrix
from farm.services.matrices.views import list_job_views, list_matrix_summaries
from farm.store.matrices.lazy_expansion import remaining_jobs
from tests.services.matrices.lazy_expansion.test_lazy_expansion import (
    AXES,
    CELLS,
    JOBS,
    PHONES,
    ROUNDS,
    spec,
    submit,
    unfold,
)
from tests.support.farm.service_fixture import FarmRig, HostRig


def test_a_matrix_says_what_is_not_queued_yet_and_counts_it(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    for chunks in (0, 1, 3):
        unfold(farm, matrix_id, jobs=4, chunks=chunks)
        view = farm.matrix(matrix_id)
        (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
        queued = len(farm.rows("SELECT job_id FROM jobs WHERE matrix_id IS NOT NULL"))
        assert view.not_queued == summary.not_queued == JOBS - queued > 0
        assert (view.jobs, summary.jobs) == (JOBS, JOBS)
        assert view.jobs_by_outcome == summary.jobs_by_outcome == {"queued": JOBS}
        assert (view.cells, summary.cells) == (CELLS * PHONES, CELLS * PHONES)
        assert [device.total for device in view.progress] == [CELLS * ROUNDS] * PHONES
        waiting = farm.read(matrix_waiting, matrix_id)
        assert (waiting.left, waiting.not_queued) == (JOBS, view.not_queued)
        # Whatever is there has its baseline beside it.
        assert all(cell.baseline for cell in view.cell_list if "int8-core" in cell.label)
    unfold(farm, matrix_id)
    assert farm.matrix(matrix_id).not_queued == 0


def test_a_baseline_that_starts_in_several_blocks_is_one_cell(farm: FarmRig, host: HostRig) -> None:
    many = {
        "axes": {**AXES, "warmup": list(range(1, 9))},
        "baseline": {"precision": "float32", "warmup": 1},
    }
    plan = farm.read(plan_matrix, spec(**many))
    assert (plan.cells, plan.jobs) == (16 * PHONES, 18 * ROUNDS * PHONES)
    matrix_id = submit(farm, **many)
    for chunks in (0, 1, None):
        unfold(farm, matrix_id, chunks=chunks)
        (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
        assert farm.matrix(matrix_id).cells == summary.cells == plan.cells


def test_jobs_are_told_page_by_page_whatever_became_of_them(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, jobs=8)
    host.exchange()
    everything = farm.read(list_job_views, matrix_id)
    pages, after = [], 0
    while page := farm.read(list_job_views, matrix_id, after=after, limit=5):
        pages.append(page)
        after = page[-1].job_id
    assert [len(page) for page in pages] == [5, 5, 5, 5, 4]
    assert [job for page in pages for job in page] == everything
    assert {job.state for job in everything} == {"queued", "active"}
    assert all(job.label for job in everything)
    assert sum(len(job.attempts) for job in everything) == PHONES
    assert farm.read(remaining_jobs, matrix_id) == []


def test_a_list_tells_the_time_left_of_a_matrix_whose_queued_jobs_have_all_ended(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm)
    unfold(farm, matrix_id, chunks=2)
    host.run()
    view = farm.matrix(matrix_id)
    (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
    assert view.eta_s is not None
    assert view.eta_s > 0
    for name in ("state", "jobs", "not_queued", "cells", "eta_s", "max_eta_s", "without_eta"):
        assert getattr(summary, name) == getattr(view, name), name
