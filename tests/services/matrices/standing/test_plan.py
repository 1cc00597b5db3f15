"""The coverage of standing matrices from round to round and after their end, and what they would queue."""

from farm.database.transaction import bind_tx
from farm.services.matrices.standing.plan import plan_standing
from farm.services.matrices.standing.sessions import stand
from farm.services.matrices.standing.views import end, list_standing_summaries
from farm.wire.documents.matrices.plans import MatrixPlanView
from farm.wire.documents.matrices.standing import standing_spec
from tests.services.matrices.standing.test_sessions import counts, coverage, host, look, matrix, stands
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

__all__ = ["host"]


def test_a_cell_is_measured_when_all_of_its_rounds_are(farm: FarmRig, host: HostRig) -> None:
    standing_id = stands(farm, rounds=5)
    look(farm)
    for number in range(12):
        (assignment,) = host.exchange().assignments
        assert counts(farm, standing_id) == {"queued": 4}, number
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)
    assert {cell.reason for cell in coverage(farm, standing_id).uncovered} == {"3 of 5 jobs are over"}
    host.run()
    with sent_to(farm.database.engine) as sent:
        assert counts(farm, standing_id) == {"measured": 4}
    # What explains missing and failed cells is asked only where there are any.
    assert not [sql for sql, _ in sent if "max(attempts.attempt_id)" in sql or "jobs.message" in sql]


def test_one_that_stands_again_after_its_end_measures_only_what_is_missing(
    farm: FarmRig, host: HostRig
) -> None:
    standing_id = stands(farm)
    look(farm)
    host.run()
    farm.write(bind_tx(end, now=farm.clock.now()), standing_id)
    assert look(farm) is None
    farm.variant("int8-core", edition="another")
    assert stands(farm) == standing_id
    assert counts(farm, standing_id) == {"measured": 2, "missing": 2}


def test_a_plan_says_what_standing_would_queue_and_stores_nothing(farm: FarmRig, host: HostRig) -> None:
    data = matrix(
        schedule="0 2 * * *",
        skip=[{"cells": {"precision": "int8-core", "warmup": 2}, "reason": "BUG-12", "until": "2999-01-31"}],
    )
    spec = standing_spec(data)

    def plan() -> MatrixPlanView:
        return farm.read(bind_tx(plan_standing, now=farm.clock.now()), spec)

    before = plan()
    assert before.standing is not None
    assert (before.cells, before.standing.missing) == (3, 3)
    assert [(group.labels, group.reason) for group in before.rejected] == [
        (("int8-core warmup=2",), "skipped until 2999-01-31: BUG-12")
    ]
    assert farm.read(list_standing_summaries) == []
    farm.write(bind_tx(stand, now=farm.clock.now(), actor="user:ann"), spec)
    look(farm)
    after = plan().standing
    assert after is not None
    assert after.missing == 0
    assert after.next_due_at == before.standing.next_due_at
