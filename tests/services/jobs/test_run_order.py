"""What ran on a device before a benchmark: of whichever matrix, by its fencing tokens."""

from dataclasses import replace

import pytest

from farm.core.base.ids import AttemptId, MatrixId
from farm.core.devices.condition import Condition
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.run_order import Predecessor, RunOrder
from farm.core.runs.evidence import Evidence
from farm.services.results.explanations.attempts import attempt_view
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase

pytestmark = pytest.mark.usefixtures("both_variants")


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


class Runs:
    """Runs of one second, each 90 s after the one before, by the device's clock."""

    def __init__(self, farm: FarmRig) -> None:
        self.farm = farm
        self.boot = "first"
        self.uptime_s = 1000.0

    def __call__(self, assignment: Assignment) -> Evidence:
        self.uptime_s += 90.0
        before = Condition(taken_at=self.farm.clock.now(), boot_id=self.boot, uptime_s=self.uptime_s)
        return replace(good_evidence(assignment), before=before)


def orders(farm: FarmRig, matrix_id: MatrixId | None) -> list[tuple[AttemptId, RunOrder | None]]:
    """The attempts of a matrix, or the checks, in the order in which they ran."""
    rows = farm.rows(
        "SELECT a.attempt_id FROM attempts a JOIN jobs j USING (job_id)"
        " WHERE j.matrix_id = :matrix OR (j.matrix_id IS NULL AND :matrix = 0) ORDER BY a.fence",
        matrix=matrix_id or 0,
    )
    ids = [AttemptId(row["attempt_id"]) for row in rows]
    return [(attempt_id, farm.read(attempt_view, attempt_id).order) for attempt_id in ids]


def before(order: RunOrder | None) -> Predecessor:
    assert order is not None
    assert order.predecessor is not None
    return order.predecessor


def test_each_start_knows_what_ran_right_before_it(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=2)
    host.run(Runs(farm))
    (first_id, first), *others = orders(farm, matrix_id)
    # Before it there was a health check.
    assert first is not None
    assert first.predecessor is None
    last_id = first_id
    for attempt_id, order in others:
        predecessor = before(order)
        assert (predecessor.attempt_id, predecessor.matrix_id) == (last_id, matrix_id)
        assert predecessor.same_matrix
        assert predecessor.series_id is not None
        assert predecessor.label in ("float32", "int8-core")
        assert (predecessor.ran_s, predecessor.pause_s) == (1.0, pytest.approx(89.0))
        last_id = attempt_id
    assert [order for _, order in orders(farm, None)] == [None]


def test_a_start_after_another_matrix_says_so(farm: FarmRig, host: HostRig) -> None:
    runs = Runs(farm)
    earlier, later = farm.submit(rounds=1), farm.submit(rounds=1)
    host.run(runs)
    (_, first), (_, second) = orders(farm, later)
    assert (before(first).matrix_id, before(first).same_matrix) == (earlier, False)
    assert (before(second).matrix_id, before(second).same_matrix) == (later, True)


def test_what_was_returned_before_it_ran_is_no_predecessor(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    runs = Runs(farm)
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, runs(assignment))
    host.clean(assignment)
    (returned,) = host.exchange().assignments
    host.exchange([phase(returned, AttemptState.RETURNED, "the device is too warm")])
    farm.clock.advance(3600)
    host.run(runs)
    ran = orders(farm, matrix_id)
    assert [attempt_id for attempt_id, _ in ran][1] == returned.attempt_id
    assert before(ran[-1][1]).attempt_id == assignment.attempt_id


def test_no_pause_is_made_up_over_a_restart_of_the_device(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    runs = Runs(farm)
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, runs(assignment))
    host.clean(assignment)
    runs.boot, runs.uptime_s = "second", 0.0
    host.run(runs)
    predecessor = before(orders(farm, matrix_id)[1][1])
    assert (predecessor.attempt_id, predecessor.ran_s) == (assignment.attempt_id, 1.0)
    assert predecessor.pause_s is None
