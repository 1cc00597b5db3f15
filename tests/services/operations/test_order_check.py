"""The alarm of a device whose times show in which order they were measured."""

import random
import re
from dataclasses import replace

import pytest

from farm.core.devices.condition import Condition
from farm.core.operations.alarm import Alarm, AlarmKind
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.operations.alarms import clear_by_operator
from farm.services.operations.order_check import OrderCheck
from farm.store.operations import alarms as alarm_store
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.operations import ClearRequest
from tests.services.conftest import on_sqlite_alone
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of

pytestmark = pytest.mark.usefixtures("both_variants")

ONE_PHONE = {"device_id": "phone-1"}


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


class Heating:
    """Runs with 0.3 % of noise; those right after int8 take longer by a share."""

    def __init__(self, farm: FarmRig, *, carried: float) -> None:
        self.farm = farm
        self.carried = carried
        self.random = random.Random(1)
        self.last = ""

    def __call__(self, assignment: Assignment) -> Evidence:
        (row,) = self.farm.rows(
            "SELECT name FROM variants WHERE digest = :digest",
            digest=plan_of(assignment).file("model").digest,
        )
        name = str(row["name"]).split("/")[1]
        slower = 1 + (self.carried if self.last == "int8-core" else 0.0)
        self.last = name
        base_us = 10_000.0 if name == "float32" else 5_000.0
        evidence = good_evidence(assignment, sample_us=base_us * slower * self.random.gauss(1.0, 0.003))
        return replace(evidence, before=Condition(taken_at=self.farm.clock.now(), boot_id="first"))


def measure(farm: FarmRig, host: HostRig, *, carried: float) -> None:
    farm.submit(devices=ONE_PHONE, rounds=18, aa=True)
    host.run(Heating(farm, carried=carried))


def open_alarms(farm: FarmRig) -> list[Alarm]:
    return farm.read(alarm_store.open_alarms)


@pytest.mark.long
def test_a_device_on_which_a_cell_slows_the_next_one_has_an_alarm_until_it_is_over(
    farm: FarmRig, host: HostRig
) -> None:
    check = OrderCheck(database=farm.database, clock=farm.clock, matrices=1)
    measure(farm, host, carried=0.05)
    check()
    (alarm,) = open_alarms(farm)
    assert (alarm.kind, alarm.subject_id) == (AlarmKind.ORDER_SHOWS, "phone-1")
    assert re.search(
        r"runs after int8-core \(matrix 1\) take [45]\.\d % longer than after others", alarm.message
    )
    assert "max_skin_c" in alarm.hint
    # It measured nothing since then.
    farm.clock.advance(7200)
    check()
    assert open_alarms(farm) == [alarm]
    measure(farm, host, carried=0.0)
    farm.clock.advance(7200)
    check()
    assert open_alarms(farm) == []


@on_sqlite_alone
def test_noise_raises_none(farm: FarmRig, host: HostRig) -> None:
    measure(farm, host, carried=0.0)
    OrderCheck(database=farm.database, clock=farm.clock)()
    assert open_alarms(farm) == []


@on_sqlite_alone
def test_a_device_is_checked_once_an_hour_and_only_where_it_measured(farm: FarmRig, host: HostRig) -> None:
    check = OrderCheck(database=farm.database, clock=farm.clock)
    farm.submit(devices=ONE_PHONE, rounds=1)
    host.run(Heating(farm, carried=0.0))
    check()
    measure(farm, host, carried=0.05)
    check()
    assert open_alarms(farm) == []
    farm.clock.advance(3600)
    check()
    assert [alarm.kind for alarm in open_alarms(farm)] == [AlarmKind.ORDER_SHOWS]


@on_sqlite_alone
def test_an_alarm_that_an_operator_cleared_is_not_raised_again_at_once(farm: FarmRig, host: HostRig) -> None:
    check = OrderCheck(database=farm.database, clock=farm.clock)
    measure(farm, host, carried=0.05)
    check()
    (alarm,) = open_alarms(farm)
    farm.write(
        bind_tx(clear_by_operator, now=farm.clock.now()),
        alarm.alarm_id,
        ClearRequest(by="ann", reason="seen"),
    )
    # A process that takes over knows nothing of the last check.
    OrderCheck(database=farm.database, clock=farm.clock)()
    assert open_alarms(farm) == []
