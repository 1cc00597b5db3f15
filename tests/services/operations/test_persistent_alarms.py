"""Alarms of what lasts: no restart of the farm and no check ends one; a retired phone has none."""

import pytest

from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.checks.requested import request_check
from farm.services.devices.admin import retire
from farm.store.operations.alarms import add_alarm
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.alarm_scan import RULES, Rounds, silent_phone
from tests.support.farm.service_fixture import FarmRig, HostRig, ended

HOUR_S = 3600.0


@pytest.fixture
def rounds(farm: FarmRig) -> Rounds:
    return Rounds(farm)


def test_a_restart_of_the_farm_clears_no_alarm_of_what_lasts(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    host.plug_in("phone-8")
    host.plug_in("phone-9")
    host.earn_health()
    farm.submit(devices={"device_id": "phone-9"}, rounds=5)
    other = farm.host("bench-2")
    other.plug_in("phone-7")
    other.exchange()
    silent_phone(host)
    farm.clock.advance(RULES.work_after.total_seconds() + 1)
    host.phones["phone-8"] = host.phones["phone-8"].model_copy(update={"claimants": ("usb-1", "usb-2")})
    host.exchange()
    farm.reap()
    before = rounds.look(1)
    assert {each.split(":")[0] for each in before} == {
        "device_silent device",
        "identity_clash device",
        "cell_silent cell",
        "host_incident host",
    }
    farm.clock.advance(1200)
    farm.up_since = farm.clock.now()
    assert rounds.look(1) == before
    assert farm.rows("SELECT count(*) n FROM alarms") == [{"n": len(before)}]


def test_a_bad_phone_stays_told_of_while_it_is_checked(farm: FarmRig, host: HostRig, rounds: Rounds) -> None:
    def broken(assignment: Assignment) -> Evidence:
        return ended(assignment, "shell_exit 0\n", code=1)

    farm.write(bind_tx(request_check, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    assert host.run(broken) == 1
    for _ in range(2):
        farm.clock.advance(HOUR_S)
        answer = host.exchange()
    assert [each.device_id for each in answer.assignments] == ["phone-1"]
    assert rounds.look(1) == ["device_silent device:phone-1"]


def test_a_retired_phone_leaves_no_alarm(farm: FarmRig, host: HostRig, rounds: Rounds) -> None:
    farm.write(
        bind_tx(add_alarm, now=farm.clock.now()),
        DueAlarm(
            kind=AlarmKind.REFERENCE_DRIFT,
            subject=AlarmSubject.DEVICE,
            subject_id="phone-1",
            message="slow",
            hint="look",
        ),
    )
    assert rounds.look(1) == ["reference_drift device:phone-1"]
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="ann", reason="sold"))
    assert rounds.look(1) == []
