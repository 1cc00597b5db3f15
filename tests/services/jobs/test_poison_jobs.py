"""What makes one phone after another go away is stopped before it reaches the next."""

from dataclasses import replace

import pytest

from farm.core.devices.device import Presence
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    plan_of,
    torch_output,
)


@pytest.fixture
def four(farm: FarmRig, host: HostRig) -> HostRig:
    """The host with two more phones, all of them well for a while."""
    host.plug_in("phone-3")
    host.plug_in("phone-4")
    host.earn_health()
    return host


def went(assignment: Assignment, code: str = "device.rebooted") -> Evidence:
    evidence = device_trouble(assignment)
    assert evidence.error is not None
    return replace(evidence, error=replace(evidence.error, code=code))


def jobs(farm: FarmRig, outcome: str) -> list[dict[str, object]]:
    return farm.rows(
        "SELECT j.code, j.message, c.label FROM jobs j JOIN cells c ON c.cell_id = j.cell_id"
        " WHERE j.outcome = :outcome",
        outcome=outcome,
    )


@pytest.mark.invariant("I15", "I16")
@pytest.mark.fault(53)
def test_work_that_two_phones_did_not_survive_is_run_on_no_third_one(farm: FarmRig, four: HostRig) -> None:
    matrix_id = farm.submit(rounds=3)
    poison = poisoned_digest(farm)
    reboots: list[str] = []

    def answer(assignment: Assignment) -> Evidence:
        if poison not in {file.digest for file in plan_of(assignment).files}:
            return good_evidence(assignment)
        reboots.append(assignment.device_id)
        return went(assignment)

    four.run(answer)
    killed = jobs(farm, "failed")
    assert {row["code"] for row in killed} == {"job.poison"}
    assert {row["label"] for row in killed} == {"int8-core"}
    assert len(set(reboots)) >= 2
    assert len({device for device in reboots if device in str(killed[0]["message"])}) == 2
    assert farm.matrix(matrix_id).jobs_by_outcome == {"succeeded": 12, "failed": 12}
    assert {row["health"] for row in farm.rows("SELECT health FROM devices")} == {"good"}
    # At most what was under way already when the second phone was lost.
    assert len(reboots) <= 4 + 1


@pytest.mark.fault(53)
def test_both_phones_are_checked_after_it(farm: FarmRig, four: HostRig) -> None:
    farm.submit(rounds=1, devices={"device_id": ["phone-1", "phone-2"]}, axes=ONE_VARIANT, baseline=None)
    first, second = four.exchange().assignments
    for each in (first, second):
        four.report(each.attempt_id, went(each, "device.lost"))
        farm.clock.advance(120)
        four.clean(each)
    answer = four.exchange()
    assert {plan_of(each).harness for each in answer.assignments} == {"device_check"}
    assert {each.device_id for each in answer.assignments} == {"phone-1", "phone-2"}


@pytest.mark.invariant("I16")
@pytest.mark.fault(4, 13)
def test_one_phone_that_goes_away_again_and_again_uses_up_its_budget_and_nothing_else(
    farm: FarmRig, four: HostRig
) -> None:
    farm.submit(rounds=1, devices={"device_id": "phone-1"}, axes=ONE_VARIANT, baseline=None)
    lost = 0
    while True:
        assignments = four.exchange().assignments
        if not assignments:
            break
        (each,) = assignments
        is_check = plan_of(each).harness == "device_check"
        lost += not is_check
        four.report(each.attempt_id, good_evidence(each) if is_check else went(each))
        four.clean(each)
    assert lost == 3
    (ended,) = farm.rows("SELECT outcome, code FROM jobs WHERE matrix_id IS NOT NULL")
    assert ended == {"outcome": "inconclusive", "code": "device.rebooted"}


@pytest.mark.fault(53)
def test_work_of_another_matrix_is_not_condemned(farm: FarmRig, four: HostRig) -> None:
    ids = [
        farm.submit(rounds=1, devices={"device_id": device_id}, axes=ONE_VARIANT, baseline=None)
        for device_id in ("phone-1", "phone-2")
    ]
    for each in four.exchange().assignments:
        four.report(each.attempt_id, went(each))
        four.clean(each)
    four.run()
    assert [farm.matrix(matrix_id).jobs_by_outcome for matrix_id in ids] == [{"succeeded": 1}] * 2


@pytest.mark.invariant("I16")
@pytest.mark.fault(25, 53)
def test_a_late_report_that_shows_a_poison_job_ends_its_work(farm: FarmRig, four: HostRig) -> None:
    farm.submit(rounds=1, axes=ONE_VARIANT, baseline=None)
    runs = four.exchange().assignments
    four.exchange([phase(each, AttemptState.MEASURING) for each in runs])
    four.report(runs[0].attempt_id, went(runs[0]))
    be_quiet(farm)
    four.restart([phase(each, AttemptState.MEASURING) for each in runs[1:]])
    assert four.report(runs[1].attempt_id, went(runs[1])).counted
    assert [row["code"] for row in jobs(farm, "failed")] == ["job.poison"] * 4


@pytest.mark.invariant("I16")
@pytest.mark.fault(25)
def test_a_late_report_that_a_budget_does_not_allow_ends_the_job(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1, devices={"device_id": "phone-1"}, axes=ONE_VARIANT, baseline=None)
    lost = 0
    while lost < 2:
        (each,) = host.exchange().assignments
        is_check = plan_of(each).harness == "device_check"
        lost += not is_check
        host.report(each.attempt_id, good_evidence(each) if is_check else went(each))
        host.clean(each)
    (check,) = host.exchange().assignments
    host.report(check.attempt_id, good_evidence(check))
    host.clean(check)
    (run,) = host.exchange().assignments
    host.exchange([phase(run, AttemptState.MEASURING)])
    be_quiet(farm)
    host.restart([phase(run, AttemptState.MEASURING)])
    assert host.report(run.attempt_id, went(run)).counted
    (ended,) = farm.rows("SELECT outcome, code FROM jobs WHERE matrix_id IS NOT NULL")
    assert ended == {"outcome": "inconclusive", "code": "device.rebooted"}


@pytest.mark.invariant("I16")
@pytest.mark.fault(53)
def test_what_a_third_phone_returns_after_two_went_away_is_not_queued_again(
    farm: FarmRig, four: HostRig
) -> None:
    farm.submit(rounds=1, devices={"device_id": list(THREE)}, axes=ONE_VARIANT, baseline=None)
    first, second, third = four.exchange().assignments
    for each in (first, second):
        four.report(each.attempt_id, went(each))
    four.exchange([phase(third, AttemptState.RETURNED, "too warm")])
    assert [row["code"] for row in jobs(farm, "failed")] == ["job.poison"] * 3


@pytest.mark.invariant("I16")
@pytest.mark.fault(53)
def test_a_block_that_is_repeated_leaves_out_what_made_other_phones_go_away(
    farm: FarmRig, four: HostRig
) -> None:
    farm.submit(rounds=1, devices={"device_id": list(THREE)}, seed=SEED)
    poison = poisoned_digest(farm)
    put(four, Presence.OFFLINE)
    (survived,) = four.exchange().assignments
    assert poison in {file.digest for file in plan_of(survived).files}
    four.report(survived.attempt_id, good_evidence(survived))
    four.clean(survived)
    (run,) = four.exchange().assignments
    put(four, Presence.ONLINE)
    while others := four.exchange([phase(run, AttemptState.MEASURING)]).assignments[1:]:
        for each in others:
            is_poisoned = poison in {file.digest for file in plan_of(each).files}
            four.report(each.attempt_id, went(each) if is_poisoned else good_evidence(each))
            four.clean(each)
    assert len(jobs(farm, "failed")) == 2
    four.report(run.attempt_id, ended(run, torch_output([1000.0] * 4)))
    queued = "SELECT c.label FROM jobs j JOIN cells c ON c.cell_id = j.cell_id WHERE j.state = 'queued'"
    assert farm.rows(queued) == [{"label": "float32"}]


def put(host: HostRig, presence: Presence) -> None:
    for device_id in THREE[:2]:
        host.phones[device_id] = host.phones[device_id].model_copy(update={"presence": presence})


def be_quiet(farm: FarmRig) -> None:
    farm.clock.advance(600)
    farm.reap()
    farm.reap()


THREE = ("phone-1", "phone-2", "phone-3")
#: The third phone has the poisoned cell first.
SEED = 3
ONE_VARIANT = {"model": "mobilenet_v2", "precision": ["float32"], "format": "torchscript", "backend": "cpu"}


def poisoned_digest(farm: FarmRig) -> str:
    (row,) = farm.rows("SELECT digest FROM variants WHERE name LIKE '%int8-core%'")
    return str(row["digest"])
