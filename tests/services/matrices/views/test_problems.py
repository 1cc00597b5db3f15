"""Each problem of a cell leads to the newest attempt that has it."""

from typing import Any

import pytest
import sqlalchemy as sa

from farm.database.tables import jobs
from farm.services.matrices.views import list_cell_lines, list_cell_views
from farm.store.jobs import jobs as job_store
from farm.store.jobs.jobs import AlikeJobs
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_problem_with_several_codes_leads_to_its_newest_attempt(
    farm: FarmRig, host: HostRig, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    """The first job of one code may have been tried again after those of another code."""
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    while assignments := host.exchange().assignments:
        for assignment in assignments:
            host.report(assignment.attempt_id, ended(assignment, ""))
            host.clean(assignment)
    (cell, *_) = farm.matrix(matrix_id).cell_list
    statement = "SELECT job_id, attempt_id FROM jobs WHERE cell_id = :id AND attempt_id > 0"
    own = farm.rows(statement, id=cell.cell_id)
    assert len(own) > 1
    for job in own:
        failed = sa.update(jobs).where(jobs.c.job_id == job["job_id"])
        changed = failed.values(message="it hung", code=f"code_{job['job_id']}")
        farm.write(lambda tx, changed=changed: tx.execute(changed))
    alike_jobs_of_cells = job_store.alike_jobs_of_cells

    def ordered(*arguments: Any) -> list[AlikeJobs]:
        rows: list[AlikeJobs] = alike_jobs_of_cells(*arguments)
        return rows[::-1] if newest_first else rows

    monkeypatch.setattr(job_store, "alike_jobs_of_cells", ordered)
    (cell, *_) = farm.matrix(matrix_id).cell_list
    assert cell.problems["failed: it hung"] == len(own)
    assert cell.attempt_by_problem["failed: it hung"] == max(job["attempt_id"] for job in own)


def test_lines_of_cells_say_the_same_as_their_documents(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    (first,) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    host.clean(first)
    (second,) = host.exchange().assignments
    host.report(second.attempt_id, ended(second, ""))
    lines = farm.database.read(list_cell_lines, matrix_id, after=-1)
    views = farm.database.read(list_cell_views, matrix_id, after=-1)
    assert any(line.value_ns for line in lines)
    assert any(line.problems for line in lines)
    for line, view in zip(lines, views, strict=True):
        assert {name: getattr(view, name) for name in line.__slots__} == {
            name: getattr(line, name) for name in line.__slots__
        }
