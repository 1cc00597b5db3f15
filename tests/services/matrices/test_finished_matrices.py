"""What was counted of a finished matrix is what is counted anew, also when its jobs change again."""

from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_lines, list_matrix_summaries, matrix_view
from farm.store.jobs.finished_matrices import FinishedMatrices
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, good_evidence

NAMES = ("phone-1", "phone-2", "phone-3")


def test_a_list_says_the_same_of_matrices_that_are_queued_run_and_ended(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    finished = FinishedMatrices()

    def compare() -> list[str]:
        lines = farm.read(list_matrix_lines, finished, limit=9)
        summaries = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
        known = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()), finished=finished)
        assert known == summaries
        for line, summary in zip(lines, summaries, strict=True):
            for name in ("matrix_id", "name", "state", "created_at", "jobs", "jobs_by_outcome"):
                assert getattr(line, name) == getattr(summary, name), name
        return [line.state for line in lines]

    farm.submit()
    assert compare() == ["running"]
    for assignment in host.exchange().assignments:
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)
    assert compare() == ["running"]
    host.run()
    assert compare() == ["finished"]
    farm.submit()
    assert compare() == ["running", "finished"]
    host.run()
    assert compare() == ["finished", "finished"]


def test_a_finished_matrix_is_counted_once(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    matrix_id = farm.submit()
    host.run()
    finished = FinishedMatrices()

    def statements() -> list[str]:
        with sent_to(farm.database.engine) as sent:
            assert matrix_id in farm.read(finished.find, [matrix_id])
        return [str(statement) for statement in sent]

    assert any("group by" in statement.lower() for statement in statements())
    again = statements()
    assert not any("group by" in statement.lower() for statement in again), again


def test_a_page_of_devices_has_the_progress_of_the_whole(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    matrix_id = farm.submit()
    view = bind_tx(matrix_view, now=farm.clock.now())
    for _ in range(2):
        whole = farm.read(view, matrix_id)
        first = farm.read(view, matrix_id, devices=("", 2))
        rest = farm.read(view, matrix_id, devices=(first.progress[-1].device_id, 2))
        assert (*first.progress, *rest.progress) == whole.progress
        for page in (first, rest):
            assert dict(page) == {**dict(whole), "progress": page.progress}
        host.run()
