"""From a matrix to a speedup, and everything that can happen to a job on the way."""

import pytest

from farm.core.base.ids import AttemptId
from farm.core.errors import Blame, Forbidden, InvalidInput, NotFound, ReportConflict, SessionFenced
from farm.core.jobs.attempt import AttemptState
from farm.core.jobs.retry import LONGEST_PAUSE, MAX_RETURNS
from farm.core.runs.measurement import Verdict
from farm.wire.agents.protocol import Assignment, Exchange
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    plan_of,
    report_body,
    torch_output,
)


@pytest.mark.on_postgresql
def test_a_matrix_travels_to_a_speedup_with_an_interval(farm: FarmRig, host: HostRig) -> None:
    slow = farm.rows("SELECT digest FROM variants WHERE name LIKE '%float32%'")[0]["digest"]
    jitter = iter(range(10_000))

    def answer(assignment: Assignment):
        base = 2000 if plan_of(assignment).file("model").digest == slow else 1000
        return good_evidence(assignment, sample_us=base + next(jitter) % 7)

    matrix_id = farm.submit()
    assert host.run(answer) == 2 * 2 * 5
    rows = farm.speedups(matrix_id)
    assert [row.device_id for row in rows] == ["phone-1", "phone-2"]
    for row in rows:
        assert row.verdict is Verdict.FASTER
        assert row.speedup == pytest.approx(2.0, rel=0.02)
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low <= row.speedup <= row.ci_high
        assert (row.rounds, row.excluded) == (5, 0)
        assert (row.baseline, row.candidate) == ("float32", "int8-core")


def test_every_round_of_a_device_is_a_block_in_an_order_of_its_own(farm: FarmRig, host: HostRig) -> None:
    farm.variant("float32", "lite")
    farm.variant("int8-core", "lite")
    farm.submit(
        axes={
            "model": "mobilenet_v2",
            "precision": ["float32", "int8-core"],
            "format": ["torchscript", "lite"],
            "backend": "cpu",
        },
        rounds=8,
    )
    jobs = farm.rows("SELECT device_id, round, cell_id FROM jobs WHERE kind = 'benchmark' ORDER BY job_id")
    for device_id in ("phone-1", "phone-2"):
        own = [job for job in jobs if job["device_id"] == device_id]
        assert [job["round"] for job in own] == sorted(job["round"] for job in own)
        blocks = [tuple(job["cell_id"] for job in own[n : n + 4]) for n in range(0, 32, 4)]
        assert len({frozenset(block) for block in blocks}) == 1
        assert len(set(blocks)) > 1


@pytest.mark.invariant("I18")
def test_phones_that_share_a_cpu_take_turns(farm: FarmRig) -> None:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1", cpu_domain="host-cpu")
    host.plug_in("phone-2", cpu_domain="host-cpu")
    host.earn_health()
    farm.submit()
    served = []
    for _ in range(4):
        (assignment,) = host.exchange().assignments
        served.append(assignment.device_id)
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)
    assert served[0] != served[1]
    assert served[:2] == served[2:]


@pytest.mark.invariant("I14")
def test_a_new_phone_is_checked_before_it_gets_work(farm: FarmRig) -> None:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1")
    (check,) = host.exchange().assignments
    assert plan_of(check).harness == "device_check"
    farm.submit()
    host.report(check.attempt_id, good_evidence(check))
    assert farm.rows("SELECT health FROM devices") == [{"health": "good"}]
    assert host.exchange().assignments == ()  # not cleaned up yet
    host.clean(check)
    assert plan_of(host.exchange().assignments[0]).harness == "speed_benchmark_torch"


@pytest.mark.invariant("I14")
def test_a_phone_that_fails_its_check_is_bad_until_it_comes_back(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    (check,) = host.exchange().assignments
    host.report(check.attempt_id, ended(check, "shell_exit 0\n", code=23))
    host.clean(check)
    assert farm.rows("SELECT health FROM devices") == [{"health": "bad"}]
    assert host.exchange().assignments == ()
    unplugged = host.phones.pop("phone-1")
    host.exchange()
    host.phones["phone-1"] = unplugged
    (again,) = host.exchange().assignments
    assert plan_of(again).harness == "device_check"


@pytest.mark.invariant("I14")
def test_a_phone_of_a_host_that_does_not_auto_admit_waits_for_an_operator(farm: FarmRig) -> None:
    host = farm.host(auto_admit=False)
    host.plug_in("phone-1")
    assert host.exchange().assignments == ()
    assert farm.rows("SELECT admin FROM devices") == [{"admin": "pending"}]


@pytest.mark.invariant("I1", "I2")
@pytest.mark.fault(31)
def test_an_assignment_comes_again_until_the_agent_says_it_prepares(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first = host.exchange().assignments
    assert host.exchange().assignments == first
    answer = host.exchange([phase(first[0], AttemptState.PREPARING)])
    assert [assignment.plan is None for assignment in answer.assignments] == [True, False]


@pytest.mark.invariant("I3", "I11")
@pytest.mark.fault(39)
def test_an_older_exchange_changes_nothing(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    host.exchange([phase(first, AttemptState.MEASURING)])
    host.exchange([phase(first, AttemptState.RETURNED)], seq=1)
    attempt = farm.rows("SELECT state FROM attempts WHERE attempt_id = :id", id=first.attempt_id)
    assert attempt == [{"state": "measuring"}]


@pytest.mark.invariant("I3")
@pytest.mark.fault(39)
def test_a_phase_that_quotes_another_fence_changes_nothing(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    stale = phase(first.model_copy(update={"fence": first.fence - 1}), AttemptState.MEASURING)
    host.exchange([stale])
    attempt = farm.rows("SELECT state FROM attempts WHERE attempt_id = :id", id=first.attempt_id)
    assert attempt == [{"state": "claimed"}]


@pytest.mark.on_postgresql
@pytest.mark.invariant("I4")
@pytest.mark.fault(33, 35)
def test_a_report_again_gets_the_stored_answer_and_counts_once(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    body = report_body(good_evidence(first))
    answers = [host.report_bytes(first.attempt_id, body) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].counted
    counted = farm.rows("SELECT count(*) n FROM measurements WHERE attempt_id = :id", id=first.attempt_id)
    assert counted == [{"n": 1}]


@pytest.mark.invariant("I4", "I6")
def test_a_different_report_of_a_settled_attempt_is_a_conflict(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    with pytest.raises(ReportConflict):
        host.report(first.attempt_id, good_evidence(first, sample_us=1.0))


@pytest.mark.invariant("I19")
def test_a_report_of_another_hosts_attempt_is_refused(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    with pytest.raises(Forbidden):
        farm.host("bench-2").report(first.attempt_id, good_evidence(first))


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff\xfe", b'{"evidence": {"fence": "x"}}'])
@pytest.mark.invariant("I12")
def test_a_malformed_report_is_refused_and_nothing_is_lost(farm: FarmRig, host: HostRig, body: bytes) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    with pytest.raises(InvalidInput, match=r"malformed|fence"):
        host.report_bytes(first.attempt_id, body)
    assert host.report(first.attempt_id, good_evidence(first)).counted


def test_a_report_of_an_unknown_attempt_is_not_found(farm: FarmRig, host: HostRig) -> None:
    with pytest.raises(NotFound):
        host.report_bytes(AttemptId(999), b"{}")


@pytest.mark.invariant("I16")
@pytest.mark.fault(2)
def test_a_failure_of_the_phone_is_retried_within_its_budget(farm: FarmRig, host: HostRig) -> None:
    host.phones.pop("phone-2")
    matrix_id = farm.submit(
        axes={"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        baseline=None,
        rounds=1,
        devices={"device_id": "phone-1"},
    )
    attempts = host.run(
        lambda a: good_evidence(a) if plan_of(a).harness == "device_check" else device_trouble(a)
    )
    view = farm.matrix(matrix_id)
    assert view.jobs_by_outcome == {"inconclusive": 1}
    # Three tries, and the check that the third device failure caused.
    assert attempts == 4
    assert "the phone is gone" in next(iter(view.cell_list[0].problems))


@pytest.mark.invariant("I16")
def test_a_variant_that_crashes_is_not_retried(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    crash = "terminate called after throwing an instance of 'c10::Error'"
    assert host.run(lambda a: ended(a, "", code=134, stderr=crash)) == 4
    assert farm.matrix(matrix_id).jobs_by_outcome == {"failed": 4}
    assert farm.rows("SELECT DISTINCT health FROM devices") == [{"health": "good"}]


@pytest.mark.parametrize("stdout", ["", "no numbers here\n", torch_output([1000.0] * 5)[:-40]])
def test_output_without_numbers_fails_with_the_place_and_a_hint(
    farm: FarmRig, host: HostRig, stdout: str
) -> None:
    matrix_id = farm.submit(rounds=1)
    host.run(lambda a: ended(a, stdout))
    view = farm.matrix(matrix_id)
    assert view.jobs_by_outcome == {"failed": 4}
    assert all(cell.problems for cell in view.cell_list)


@pytest.mark.invariant("I13", "I16")
def test_a_job_that_is_returned_costs_nothing_until_it_happened_too_often(
    farm: FarmRig, host: HostRig
) -> None:
    host.phones.pop("phone-2")
    matrix_id = farm.submit(rounds=1, devices={"device_id": "phone-1"})
    for _ in range(MAX_RETURNS):
        (assignment,) = host.exchange().assignments
        host.clean(assignment)
        host.exchange([phase(assignment, AttemptState.RETURNED, "skin 45.0 C, at most 38.0 C")])
        farm.clock.advance(LONGEST_PAUSE.total_seconds())
        host.exchange()
    view = farm.matrix(matrix_id)
    assert view.jobs_by_outcome == {"inconclusive": 1, "active": 1}
    assert any("skin 45.0 C" in problem for cell in view.cell_list for problem in cell.problems)


@pytest.mark.invariant("I5")
def test_an_incomplete_measurement_is_kept_shown_and_its_block_repeated(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    answers = iter(range(1000))

    def short_at_first(assignment: Assignment):
        samples = [1000.0] * 4 if next(answers) == 0 else [1000.0] * 5
        return ended(assignment, torch_output(samples))

    assert host.run(short_at_first) == 2 * 5 + 2
    (row,) = farm.speedups(matrix_id)
    assert (row.rounds, row.excluded, row.verdict) == (5, 1, Verdict.SAME)
    short = farm.rows("SELECT quality, accepted FROM measurements WHERE quality <> 'valid'")
    assert short == [{"quality": "incomplete", "accepted": 1}]


@pytest.mark.invariant("I16")
def test_blocks_are_repeated_a_bounded_number_of_times(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    samples = [1000.0] * 4
    assert host.run(lambda a: ended(a, torch_output(samples))) == 2 * 3
    (row,) = farm.speedups(matrix_id)
    assert (row.rounds, row.verdict) == (0, Verdict.UNDECIDED)


@pytest.mark.invariant("I16")
def test_a_cell_that_never_is_valid_stops_having_all_others_measured_again(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=10)
    short = [1000.0] * 4

    def one_is_short(assignment: Assignment):
        is_baseline = assignment.job_id in baseline_jobs(farm)
        return ended(assignment, torch_output([1000.0] * 5 if is_baseline else short))

    # Rounds 1 to 3 ask for another block; from the fourth on nothing does, those blocks included.
    assert host.run(one_is_short) == 2 * (10 + 3)
    (row,) = farm.speedups(matrix_id)
    assert (row.rounds, row.verdict) == (0, Verdict.UNDECIDED)


def test_a_cell_that_was_valid_once_is_measured_again_however_often_it_is_incomplete(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=6)
    short, count = [1000.0] * 4, iter(range(1000))
    assert host.run(lambda a: ended(a, torch_output(short if next(count) > 1 else [1000.0] * 5))) == 2 * (
        6 + 5 + 5
    )


def baseline_jobs(farm: FarmRig) -> set[int]:
    """The jobs of cells that others are compared to."""
    rows = farm.rows("SELECT job_id FROM jobs JOIN cells USING (cell_id) WHERE baseline_index IS NULL")
    return {row["job_id"] for row in rows}


@pytest.mark.invariant("I9")
@pytest.mark.fault(24)
def test_a_restarted_agent_goes_on_with_what_was_being_measured(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    first, second = host.exchange().assignments
    host.exchange([phase(first, AttemptState.MEASURING), phase(second, AttemptState.PREPARING)])
    answer = host.restart([phase(first, AttemptState.MEASURING), phase(second, AttemptState.PREPARING)])
    assert [(order.attempt_id, order.do) for order in answer.orders] == [
        (first.attempt_id, "continue"),
        (second.attempt_id, "abandon"),
    ]
    assert host.report(first.attempt_id, good_evidence(first)).counted
    states = farm.rows("SELECT state FROM attempts WHERE attempt_id = :id", id=second.attempt_id)
    assert states == [{"state": "returned"}]


@pytest.mark.invariant("I3")
@pytest.mark.fault(26)
def test_an_older_session_is_fenced_by_a_newer_one(farm: FarmRig, host: HostRig) -> None:
    older = host.session_id
    host.restart()
    with pytest.raises(SessionFenced, match="a newer one of bench-1 was opened"):
        host.call(Exchange(seq=99), session_id=older)


@pytest.mark.on_postgresql
@pytest.mark.invariant("I4", "I6", "I9")
@pytest.mark.fault(27)
def test_a_lost_agents_jobs_are_queued_again_and_its_late_report_still_counts(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=1)
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.MEASURING)])
    farm.clock.advance(61)
    farm.reap()
    farm.clock.advance(301)
    farm.reap()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"queued": 2}
    assert farm.rows("SELECT state FROM attempts ORDER BY attempt_id DESC LIMIT 1") == [{"state": "lost"}]
    assert host.report(assignment.attempt_id, good_evidence(assignment)).counted
    assert farm.matrix(matrix_id).jobs_by_outcome == {"queued": 1, "succeeded": 1}


@pytest.mark.invariant("I10")
@pytest.mark.fault(36)
def test_nothing_expires_while_the_farm_itself_was_down(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    host.exchange()
    farm.clock.advance(3600)
    farm.up_since = farm.clock.now()
    farm.reap()
    assert farm.rows("SELECT DISTINCT state FROM sessions WHERE session_id = :id", id=host.session_id) == [
        {"state": "live"}
    ]
    farm.clock.advance(59)
    farm.reap()
    assert len(host.exchange().assignments) == 2


@pytest.mark.invariant("I13")
@pytest.mark.fault(31)
def test_a_grant_no_one_starts_is_taken_back_at_no_cost(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    host.exchange()
    for _ in range(13):
        farm.clock.advance(10)
        host.phones.clear()
        host.exchange()
        farm.reap()
    assert farm.matrix(matrix_id).jobs_by_outcome == {"queued": 10}


@pytest.mark.invariant("I15")
def test_an_inconclusive_end_through_the_host_leaves_the_phones_health_alone(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(rounds=2)
    host.run(lambda a: device_trouble(a, Blame.HOST))
    assert farm.rows("SELECT DISTINCT health FROM devices") == [{"health": "good"}]
