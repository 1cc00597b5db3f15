"""Whom the periodic duties wake: those for whom there may be work now, and nobody else."""

from dataclasses import replace

import pytest

from farm.core.base.ids import AttemptId, HostId
from farm.core.results.settle.report import IncomingReport
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.notifications import HostNotification
from farm.database.transaction import bind_tx
from farm.services.devices.reservations import reserve
from farm.services.periodic.leader_election import PeriodicLeader, serving_period_since
from farm.services.upkeep.device_actions import request_device_action
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest, ReservationRequest
from tests.support.farm.direct_calls import receive
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, report_body

_TICK_S = 10.0
ONE_CELL = {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"}


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """One of two hosts, with a good phone; there are the usual variants."""
    farm.variant("float32")
    farm.variant("int8-core")
    farm.host("bench-2")
    return farm.healthy_host("phone-1")


def woken_by_ticks(farm: FarmRig, *, for_s: float) -> set[HostNotification]:
    """Whom the farm's periodic duties wake for so long; no agent says anything meanwhile."""
    up_since = farm.clock.now()
    serving = serving_period_since(up_since, every_s=_TICK_S)
    duties = PeriodicLeader(process="farm 1", clock=farm.clock, every_s=_TICK_S, serving=serving)
    woken: set[HostNotification] = set()
    farm.database.on_change = woken.add
    for _ in range(round(for_s / _TICK_S)):
        farm.clock.advance(_TICK_S)
        farm.write(duties.do, farm.clock.now(), up_since)
    return woken


BENCH_1 = {HostNotification(frozenset({HostId("bench-1")}))}


def test_a_tick_with_nothing_due_wakes_no_one(farm: FarmRig, host: HostRig) -> None:
    assert woken_by_ticks(farm, for_s=30) == set()


def test_an_agent_that_is_lost_wakes_no_one(farm: FarmRig, host: HostRig) -> None:
    assert woken_by_ticks(farm, for_s=600) == set()
    states = {row["state"] for row in farm.rows("SELECT state FROM sessions")}
    assert states == {"lost"}


def test_a_grant_that_is_taken_back_wakes_its_host_alone(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    assert host.exchange().assignments
    farm.clock.advance(125)
    host.exchange()
    assert woken_by_ticks(farm, for_s=125) == BENCH_1
    assert farm.rows("SELECT 1 FROM attempts WHERE state = 'returned'")


def test_a_hold_that_ends_wakes_its_host_alone(farm: FarmRig, host: HostRig) -> None:
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="kim", for_s=60))
    assert woken_by_ticks(farm, for_s=50) == set()
    assert woken_by_ticks(farm, for_s=20) == BENCH_1


def test_a_device_action_that_expires_wakes_its_host_alone(farm: FarmRig, host: HostRig) -> None:
    farm.write(
        bind_tx(request_device_action, now=farm.clock.now()),
        "phone-1",
        DeviceActionKind.IDENTIFY,
        OperatorRequest(by="kim"),
    )
    assert woken_by_ticks(farm, for_s=700) == BENCH_1


def settled(farm: FarmRig, host: HostRig, attempt_id: AttemptId, body: bytes) -> set[HostNotification]:
    """Whom a report wakes."""
    arrived = IncomingReport(host_id=host.host_id, attempt_id=attempt_id, body=body, at=farm.clock.now())
    woken: set[HostNotification] = set()
    farm.database.on_change = woken.add
    farm.database.submit_change(receive, [arrived]).result()
    return woken


def test_a_report_wakes_its_host_and_one_that_says_nothing_new_no_one(farm: FarmRig, host: HostRig) -> None:
    farm.submit()
    (given,) = host.exchange().assignments
    body = report_body(good_evidence(given))
    assert settled(farm, host, given.attempt_id, b"{}") == set()
    assert settled(farm, host, given.attempt_id, body) == BENCH_1
    assert settled(farm, host, given.attempt_id, body) == set()


@pytest.mark.fault(53)
def test_a_report_that_shows_a_poison_job_wakes_those_who_have_its_phones(
    farm: FarmRig, host: HostRig
) -> None:
    other = farm.host("bench-3")
    other.plug_in("phone-2")
    other.earn_health()
    farm.submit(axes=ONE_CELL, rounds=1, baseline=None)
    (first,), (second,) = host.exchange().assignments, other.exchange().assignments
    settled(farm, host, first.attempt_id, rebooted(first))
    woken = settled(farm, other, second.attempt_id, rebooted(second))
    assert woken == {HostNotification(frozenset({HostId("bench-1"), HostId("bench-3")}))}


def rebooted(assignment: Assignment) -> bytes:
    gone = device_trouble(assignment)
    assert gone.error is not None
    return report_body(replace(gone, error=replace(gone.error, code="device.rebooted")))
