"""A cancelled matrix starts nothing more, and what runs ends without a trace on phone, job or health."""

import pytest

from farm.core.base.ids import MatrixId
from farm.core.errors import Blame, NotFound
from farm.core.jobs.attempt import AttemptState
from farm.database.transaction import bind_tx
from farm.services.matrices.cancel import cancel_chunk
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.matrices.plans import CancellationView
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    torch_output,
)

pytestmark = pytest.mark.usefixtures("both_variants")

PHASES = (AttemptState.CLAIMED, AttemptState.PREPARING, AttemptState.MEASURING, AttemptState.REPORTING)


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


def cancel(farm: FarmRig, matrix_id: MatrixId, device: str | None = None) -> CancellationView:
    return farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), matrix_id, device=device)


def attempt_row(farm: FarmRig, attempt: Assignment) -> dict[str, object]:
    (row,) = farm.rows("SELECT * FROM attempts WHERE attempt_id = :id", id=attempt.attempt_id)
    return row


def under_way(farm: FarmRig, host: HostRig, state: AttemptState) -> tuple[MatrixId, Assignment]:
    """A matrix whose first attempt its agent says to be in some phase."""
    matrix_id = farm.submit()
    (assignment,) = host.exchange().assignments
    if state is not AttemptState.CLAIMED:
        host.exchange([phase(assignment, state)])
    return matrix_id, assignment


def outcomes(farm: FarmRig, matrix_id: MatrixId) -> dict[str, int]:
    return farm.matrix(matrix_id).jobs_by_outcome


@pytest.mark.parametrize("state", PHASES)
@pytest.mark.invariant("I7", "I16")
def test_a_run_that_is_stopped_ends_as_cancelled_and_frees_the_phone_once_it_is_clean(
    farm: FarmRig, host: HostRig, state: AttemptState
) -> None:
    matrix_id, attempt = under_way(farm, host, state)
    told = cancel(farm, matrix_id)
    assert (told.queued, told.active, told.finished) == (9, 1, 0)
    assert outcomes(farm, matrix_id) == {"cancelled": 10}
    other = farm.submit()
    # The agent has it in hand still: it is told by the list that does not name it.
    assert host.exchange([phase(attempt, state)]).assignments == ()
    assert attempt_row(farm, attempt)["state"] in PHASES
    # It stopped it, and cleans the phone up.
    assert host.exchange().assignments == ()
    row = attempt_row(farm, attempt)
    assert (row["state"], row["outcome"], row["blame"]) == ("finished", "cancelled", None)
    host.clean(attempt)
    (next_one,) = host.exchange().assignments
    assert farm.rows("SELECT matrix_id FROM jobs WHERE job_id = :id", id=next_one.job_id) == [
        {"matrix_id": other}
    ]
    assert outcomes(farm, matrix_id) == {"cancelled": 10}


@pytest.mark.parametrize("state", PHASES)
@pytest.mark.invariant("I4", "I6")
@pytest.mark.fault(34)
def test_a_report_that_comes_after_the_cancel_is_kept_and_not_counted(
    farm: FarmRig, host: HostRig, state: AttemptState
) -> None:
    matrix_id, attempt = under_way(farm, host, state)
    cancel(farm, matrix_id)
    first = host.report(attempt.attempt_id, good_evidence(attempt))
    assert (first.counted, first.outcome) == (False, "cancelled")
    assert host.report(attempt.attempt_id, good_evidence(attempt)) == first
    assert attempt_row(farm, attempt)["state"] == "finished"
    assert farm.rows("SELECT counted FROM evidence WHERE attempt_id = :id", id=attempt.attempt_id) == [
        {"counted": 0}
    ]
    assert outcomes(farm, matrix_id) == {"cancelled": 10}
    host.clean(attempt)
    farm.submit()
    assert len(host.exchange().assignments) == 1


@pytest.mark.invariant("I4", "I6")
@pytest.mark.fault(34)
def test_a_report_that_comes_before_the_cancel_counts(farm: FarmRig, host: HostRig) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.REPORTING)
    assert host.report(attempt.attempt_id, good_evidence(attempt)).counted
    told = cancel(farm, matrix_id)
    assert (told.queued, told.active, told.finished) == (9, 0, 1)
    assert outcomes(farm, matrix_id) == {"cancelled": 9, "succeeded": 1}
    assert farm.matrix(matrix_id).state == "cancelled"


@pytest.mark.invariant("I13", "I16")
def test_a_run_that_its_agent_never_received_leaves_the_phone_free(farm: FarmRig, host: HostRig) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.CLAIMED)
    cancel(farm, matrix_id)
    farm.submit()
    (next_one,) = host.exchange().assignments
    assert next_one.fence == attempt.fence + 1
    assert attempt_row(farm, attempt)["state"] == "returned"


@pytest.mark.parametrize("state", PHASES)
@pytest.mark.invariant("I16")
def test_an_agent_that_was_restarted_abandons_what_was_cancelled(
    farm: FarmRig, host: HostRig, state: AttemptState
) -> None:
    matrix_id, attempt = under_way(farm, host, state)
    cancel(farm, matrix_id)
    answer = host.restart([phase(attempt, state)])
    assert [order.do for order in answer.orders] == ["abandon"]
    assert attempt_row(farm, attempt)["state"] in ("finished", "returned")
    assert outcomes(farm, matrix_id) == {"cancelled": 10}


@pytest.mark.invariant("I6", "I16")
@pytest.mark.fault(27)
def test_a_host_that_is_lost_after_a_cancel_does_not_bring_the_job_back(farm: FarmRig, host: HostRig) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.MEASURING)
    cancel(farm, matrix_id)
    for seconds in (100, 400):
        farm.clock.advance(seconds)
        farm.reap()
    assert attempt_row(farm, attempt)["state"] == "lost"
    assert outcomes(farm, matrix_id) == {"cancelled": 10}


@pytest.mark.invariant("I4", "I16")
@pytest.mark.fault(34)
def test_a_job_that_was_queued_again_is_cancelled_and_its_late_report_is_not_counted(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.MEASURING)
    for seconds in (100, 400):
        farm.clock.advance(seconds)
        farm.reap()
    cancel(farm, matrix_id)
    host.restart()
    assert not host.report(attempt.attempt_id, good_evidence(attempt)).counted
    assert outcomes(farm, matrix_id) == {"cancelled": 10}


def test_what_was_cancelled_says_nothing_of_the_phones_health(farm: FarmRig, host: HostRig) -> None:
    for turn in range(3):
        matrix_id, attempt = under_way(farm, host, AttemptState.MEASURING)
        if turn == 1:
            cancel(farm, matrix_id)
            host.exchange()
        else:
            host.report(attempt.attempt_id, device_trouble(attempt, Blame.DEVICE))
            cancel(farm, matrix_id)
        host.clean(attempt)
        host.exchange()
    assert farm.rows("SELECT health FROM devices") == [{"health": "good"}]


@pytest.mark.invariant("I16")
def test_a_cancelled_matrix_measures_no_block_again(farm: FarmRig, host: HostRig) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.MEASURING)
    cancel(farm, matrix_id)
    short = ended(attempt, torch_output([1000.0] * 4))
    host.report(attempt.attempt_id, short)
    assert outcomes(farm, matrix_id) == {"cancelled": 10}


def test_a_repeated_block_is_cancelled_with_its_matrix(farm: FarmRig, host: HostRig) -> None:
    matrix_id, attempt = under_way(farm, host, AttemptState.MEASURING)
    short = ended(attempt, torch_output([1000.0] * 4))
    host.report(attempt.attempt_id, short)
    assert cancel(farm, matrix_id).queued == 9 + 2


def test_one_devices_part_can_be_cancelled_and_the_rest_goes_on(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    matrix_id = farm.submit()
    assert cancel(farm, matrix_id, "phone-2").queued == 10
    assert farm.matrix(matrix_id).state == "running"
    assert host.run() == 10
    assert outcomes(farm, matrix_id) == {"succeeded": 10, "cancelled": 10}


@pytest.mark.invariant("I6", "I17")
def test_cancelling_again_changes_nothing_and_leaves_no_event(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    cancel(farm, matrix_id)
    before = farm.rows("SELECT count(*) n FROM events")
    told = cancel(farm, matrix_id)
    assert (told.queued, told.active, told.finished) == (0, 0, 10)
    assert farm.rows("SELECT count(*) n FROM events") == before


def test_a_device_or_matrix_that_is_not_there_is_named(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    host.plug_in("phone-2")
    host.exchange()
    with pytest.raises(NotFound, match=f"matrix {matrix_id} has no jobs on phone-2") as caught:
        cancel(farm, matrix_id, "phone-2")
    assert caught.value.hint == "it has jobs on phone-1"
    with pytest.raises(NotFound, match="no device `phone-3`"):
        cancel(farm, matrix_id, "phone-3")
    with pytest.raises(NotFound, match="there is no matrix 99"):
        cancel(farm, MatrixId(99))


@pytest.mark.invariant("I16", "I17")
def test_what_is_cancelled_in_several_transactions_comes_to_what_one_does(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = farm.submit()
    assert len(host.exchange().assignments) == 1
    found, steps = None, 0
    while found is None or not found.is_done:
        found = farm.write(bind_tx(cancel_chunk, now=farm.clock.now(), actor="user"), matrix_id, limit=4)
        steps += 1
        # Until the last of them, what is under way goes on.
        assert outcomes(farm, matrix_id).get("active", 0) == (0 if found.is_done else 1)
    assert steps == 3
    assert (found.queued, found.active, found.finished) == (9, 1, 0)
    assert outcomes(farm, matrix_id) == {"cancelled": 10}
    (event,) = farm.rows("SELECT cause FROM events WHERE kind = 'matrix_cancelled'")
    assert event["cause"] == "all devices: 9 queued and 1 active jobs"
    assert host.exchange().assignments == ()


def test_what_would_begin_first_is_cancelled_first(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    farm.write(bind_tx(cancel_chunk, now=farm.clock.now(), actor="user"), matrix_id, limit=4)
    states = farm.rows(
        "SELECT state FROM jobs WHERE matrix_id = :id ORDER BY virtual_time, job_id", id=matrix_id
    )
    assert [row["state"] for row in states] == ["finished"] * 4 + ["queued"] * 6
