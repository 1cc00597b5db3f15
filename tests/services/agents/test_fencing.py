"""Fencing tokens never go back, even where the database did: what agents and phones know of them counts."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.bounds import MAX_FENCE
from farm.core.base.ids import AttemptId, DeviceId
from farm.core.errors import NotFound
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.alarm import AlarmKind
from farm.database.tables import attempts, devices, events, jobs
from farm.store.operations.alarms import open_alarms
from farm.wire.agents.protocol import AttemptReport
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase

PHONE = DeviceId("phone-1")


def forget_last_claim(connection: Connection) -> None:
    """A standby takes over that had not heard of the last transaction: a claim."""
    last = connection.execute(sa.select(sa.func.max(attempts.c.attempt_id))).scalar_one()
    row = connection.execute(sa.select(attempts).where(attempts.c.attempt_id == last)).one()
    since = sa.select(sa.func.max(events.c.event_id)).where(events.c.kind == "attempt_claimed")
    connection.execute(events.delete().where(events.c.event_id >= since.scalar_subquery()))
    connection.execute(
        jobs.update().where(jobs.c.job_id == row.job_id).values(state="queued", attempt_id=None)
    )
    connection.execute(attempts.delete().where(attempts.c.attempt_id == last))
    connection.execute(
        devices.update().where(devices.c.device_id == row.device_id).values(fence=row.fence - 1)
    )


def raised(farm: FarmRig) -> list[tuple[str, str, str]]:
    found = farm.rows("SELECT * FROM events WHERE kind = 'device_fence_raised' ORDER BY event_id")
    return [(row["subject_id"], row["from_state"], row["to_state"]) for row in found]


def fence_of(farm: FarmRig) -> int:
    (row,) = farm.rows("SELECT fence FROM devices WHERE device_id = :id", id=PHONE)
    return int(row["fence"])


@pytest.fixture
def one(farm: FarmRig) -> HostRig:
    """A host with one healthy phone."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in(PHONE)
    host.earn_health()
    return host


def by_session(host: HostRig, report: AttemptReport) -> None:
    host.restart([report])


def by_exchange(host: HostRig, report: AttemptReport) -> None:
    host.exchange([report])


@pytest.mark.invariant("I3", "I7")
@pytest.mark.fault(42)
@pytest.mark.parametrize("tell", [by_session, by_exchange])
def test_a_token_that_the_database_forgot_is_raised_to_and_never_given_again(
    farm: FarmRig, one: HostRig, tell: Callable[[HostRig, AttemptReport], None]
) -> None:
    farm.submit(rounds=1)
    lost = one.exchange().assignments[0]
    one.exchange([phase(lost, AttemptState.MEASURING)])
    farm.write(forget_last_claim)
    assert fence_of(farm) == lost.fence - 1
    tell(one, phase(lost, AttemptState.MEASURING).model_copy(update={"device_id": PHONE}))
    assert raised(farm) == [(PHONE, str(lost.fence - 1), str(lost.fence))]
    assert fence_of(farm) == lost.fence
    # It is to be stopped, and cleaned up, before anything else runs there.
    answer = one.exchange()
    assert answer.assignments == ()
    assert [(each.device_id, each.fence) for each in answer.clean_ups] == [(PHONE, lost.fence)]
    with pytest.raises(NotFound):
        one.report(AttemptId(lost.attempt_id + 1000), good_evidence(lost))
    one.clean(lost)
    assert one.exchange().assignments[0].fence == lost.fence + 1


@pytest.mark.invariant("I3", "I7")
@pytest.mark.fault(42)
def test_what_a_phone_alone_knows_is_raised_to(farm: FarmRig, one: HostRig) -> None:
    farm.submit(rounds=1)
    fence = fence_of(farm)
    one.phones[PHONE] = one.phones[PHONE].model_copy(update={"known_fence": fence + 7})
    answer = one.exchange()
    assert fence_of(farm) == fence + 7
    # A run of that token may be alive there.
    assert answer.assignments == ()
    assert [each.fence for each in answer.clean_ups] == [fence + 7]


@pytest.mark.invariant("I3")
@pytest.mark.parametrize("claimed", [{"known_fence": MAX_FENCE}, {"cleaned_fence": 2_000_000}])
def test_a_device_that_claims_a_run_it_cannot_have_had_gets_no_work_and_harms_no_other(
    farm: FarmRig, one: HostRig, claimed: dict[str, int]
) -> None:
    farm.submit(rounds=1)
    before, fence = one.phones[PHONE], fence_of(farm)
    one.phones[PHONE] = before.model_copy(update=claimed)
    one.exchange()
    answer = one.exchange()
    assert answer.assignments == ()
    assert answer.facts_wanted == ()
    assert [(each.device_id, each.fence, each.resets) for each in answer.clean_ups] == [(PHONE, fence, True)]
    assert fence_of(farm) == fence
    assert raised(farm) == []
    [alarm] = farm.read(open_alarms)
    assert (alarm.kind, alarm.subject_id) == (AlarmKind.REPORT_IMPLAUSIBLE, PHONE)
    assert str(*claimed.values()) in alarm.message
    one.phones[PHONE] = before
    one.exchange()
    assert farm.read(open_alarms) == []
    assert one.exchange().assignments[0].fence == fence + 1


@pytest.mark.invariant("I3")
def test_an_agent_that_quotes_a_run_that_cannot_be_raises_nothing(farm: FarmRig, one: HostRig) -> None:
    fence = fence_of(farm)
    report = AttemptReport(
        attempt_id=AttemptId(99), device_id=PHONE, fence=MAX_FENCE, phase=AttemptState.MEASURING
    )
    one.exchange([report])
    one.restart([report])
    assert fence_of(farm) == fence


@pytest.mark.invariant("I3", "I19")
def test_no_one_raises_the_tokens_of_another_hosts_phone(farm: FarmRig, one: HostRig) -> None:
    fence = fence_of(farm)
    other = farm.host("bench-2")
    report = AttemptReport(
        attempt_id=AttemptId(99), device_id=PHONE, fence=fence + 5, phase=AttemptState.MEASURING
    )
    other.exchange([report])
    other.restart([report])
    assert fence_of(farm) == fence
    assert raised(farm) == []


@pytest.mark.invariant("I3")
def test_a_lower_token_changes_nothing(farm: FarmRig, one: HostRig) -> None:
    farm.submit(rounds=1)
    assignment = one.exchange().assignments[0]
    late = phase(assignment, AttemptState.MEASURING).model_copy(update={"device_id": PHONE, "fence": 1})
    one.exchange([late])
    assert fence_of(farm) == assignment.fence
    assert raised(farm) == []


@pytest.mark.fault(44)
def test_an_agent_is_asked_for_reports_that_would_still_count_and_for_no_others(
    farm: FarmRig, one: HostRig
) -> None:
    farm.submit(rounds=1)
    assignment = one.exchange().assignments[0]
    one.exchange([phase(assignment, AttemptState.MEASURING)])
    # Its next life knows nothing of the run: its folder was lost, or the farm forgot the report.
    assert one.restart().reports_wanted == (assignment.attempt_id,)
    assert one.report(assignment.attempt_id, good_evidence(assignment)).counted
    one.clean(assignment)
    assert one.restart().reports_wanted == ()
