"""One phone of twenty that hangs, or fails whatever it gets: the others' work is what it would be."""

from collections import Counter

import pytest

from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment
from tests.services.conftest import on_sqlite_alone
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, phase

PHONES = 20
BAD = "phone-00"
ROUNDS = 3


@pytest.fixture
def fleet(farm: FarmRig) -> HostRig:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    for number in range(PHONES):
        host.plug_in(f"phone-{number:02}")
    host.earn_health()
    return host


def work_off(farm: FarmRig, host: HostRig, *, hung: str | None) -> tuple[int, Counter[str]]:
    """Have every phone run what it gets, one job an exchange; the exchanges that took, and jobs by phone.

    A phone that hangs keeps its first job, and its agent goes on saying so.
    """
    exchanges, done = 0, Counter[str]()
    kept = []
    while True:
        answer = host.exchange([phase(each, AttemptState.MEASURING) for each in kept])
        exchanges += 1
        new = [each for each in answer.assignments if each.attempt_id not in {k.attempt_id for k in kept}]
        if not new:
            return exchanges, done
        farm.clock.advance(10)
        for each in new:
            if each.device_id == hung:
                kept.append(each)
                continue
            host.report(each.attempt_id, good_evidence(each))
            host.clean(each)
            done[each.device_id] += 1


@pytest.mark.long
@pytest.mark.invariant("I13")
@pytest.mark.fault(7)
@on_sqlite_alone
def test_a_phone_that_hangs_takes_nothing_from_the_throughput_of_the_others(
    farm: FarmRig, fleet: HostRig
) -> None:
    farm.submit(rounds=ROUNDS)
    well = work_off(farm, fleet, hung=None)
    farm.submit(rounds=ROUNDS)
    exchanges, done = work_off(farm, fleet, hung=BAD)
    assert exchanges == well[0]
    assert BAD not in done
    assert {name: count for name, count in well[1].items() if name != BAD} == done


@pytest.mark.invariant("I13", "I15")
def test_a_phone_that_fails_whatever_it_gets_is_taken_out_and_the_others_do_all_of_theirs(
    farm: FarmRig, fleet: HostRig
) -> None:
    matrix_id = farm.submit(rounds=ROUNDS)

    def answer(assignment: Assignment) -> Evidence:
        return device_trouble(assignment) if assignment.device_id == BAD else good_evidence(assignment)

    fleet.run(answer)
    rows = farm.rows(
        "SELECT device_id, count(*) n FROM jobs WHERE matrix_id = :id AND outcome = 'succeeded'"
        " GROUP BY device_id",
        id=matrix_id,
    )
    assert {row["device_id"]: row["n"] for row in rows} == {
        f"phone-{number:02}": 2 * ROUNDS for number in range(1, PHONES)
    }
    health = farm.rows("SELECT device_id FROM devices WHERE health <> 'good'")
    assert health == [{"device_id": BAD}]
    # What it cost: the failures that told, and its checks.
    assert farm.rows("SELECT count(*) n FROM attempts WHERE device_id = :id", id=BAD)[0]["n"] <= 8
