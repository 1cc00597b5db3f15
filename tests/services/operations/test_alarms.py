"""Alarms: what is told of, once, and for how long."""

from datetime import timedelta

import pytest

from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Presence
from farm.core.operations.alarm import QUIET_AFTER_ACKNOWLEDGED, AlarmKind, AlarmSubject, DueAlarm
from farm.database.transaction import bind_tx
from farm.services.agents.heartbeats import is_report_unchanged
from farm.services.devices.admin import change_admin
from farm.store.devices.devices import get_device
from farm.store.operations import alarms as alarm_store
from farm.store.operations.alarms import add_alarm, clear_alarm
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.alarm_scan import RULES, Rounds, silent_phone
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

HOUR_S = 3600.0


@pytest.fixture
def rounds(farm: FarmRig) -> Rounds:
    return Rounds(farm)


@pytest.mark.invariant("I17")
def test_the_same_failure_is_one_alarm_and_one_event_until_it_is_cleared(farm: FarmRig) -> None:
    def tell() -> bool:
        return farm.write(
            bind_tx(add_alarm, now=farm.clock.now()),
            DueAlarm(
                kind=AlarmKind.PLACEMENT_CHANGED,
                subject=AlarmSubject.SERIES,
                subject_id="7",
                message="it ran on the NPU, and runs on the CPU",
                hint="look at the driver",
            ),
        )

    assert [tell(), tell()] == [True, False]
    key = AlarmKind.PLACEMENT_CHANGED, AlarmSubject.SERIES, "7"
    assert farm.write(bind_tx(clear_alarm, now=farm.clock.now()), key, cause="it is back")
    assert not farm.write(bind_tx(clear_alarm, now=farm.clock.now()), key, cause="it is back")
    assert tell()
    kinds = [
        row["kind"] for row in farm.rows("SELECT kind FROM events WHERE subject = 'alarm' ORDER BY event_id")
    ]
    assert kinds == ["alarm_raised", "alarm_cleared", "alarm_raised"]


def test_a_phone_that_is_away_for_an_hour_is_told_of_and_no_more_when_it_is_back(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    silent_phone(host)
    assert rounds.look(RULES.device_after.total_seconds() - 1) == []
    assert rounds.look(1) == ["device_silent device:phone-1"]
    host.exchange()
    assert rounds.look() == ["device_silent device:phone-1"]
    assert farm.rows("SELECT count(*) n FROM alarms WHERE kind = 'device_silent'") == [{"n": 1}]
    assert "phone-1 on bench-1: offline for 1 h 0 min: device offline" in str(
        farm.rows("SELECT * FROM alarms")
    )
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(
        update={"presence": Presence.ONLINE, "detail": None}
    )
    host.exchange()
    host.earn_health()
    assert rounds.look(1) == []


def test_a_phone_that_flickers_between_away_and_offline_is_away(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    for presence in [Presence.OFFLINE, Presence.BOOTING, Presence.ABSENT, Presence.OFFLINE] * 16:
        farm.clock.advance(60)
        host.phones["phone-1"] = host.phones["phone-1"].model_copy(update={"presence": presence})
        host.exchange()
    assert "device_silent device:phone-1" in rounds.look(1)


@pytest.mark.fault("6")
def test_a_phone_that_forgot_the_key_is_told_of_soon_with_what_its_agent_says(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    host.phones["phone-1"] = host.phones["phone-1"].model_copy(
        update={"presence": Presence.UNAUTHORIZED, "detail": "it does not know the key AB:CD"}
    )
    host.exchange()
    farm.clock.advance(RULES.failing_after.total_seconds())
    host.exchange()
    assert rounds.look(0) == ["device_unauthorized device:phone-1"]
    assert "the key AB:CD" in str(farm.rows("SELECT message FROM alarms"))


def test_a_phone_that_someone_took_out_of_the_pool_is_missed_by_no_one(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    asked = OperatorRequest(by="ann", reason="its battery swells")
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.CORDONED, asked)
    silent_phone(host)
    farm.clock.advance(2 * HOUR_S)
    host.exchange()
    assert rounds.look(0) == []


@pytest.mark.invariant("I10")
def test_no_one_was_silent_while_the_farm_was_down(farm: FarmRig, host: HostRig, rounds: Rounds) -> None:
    silent_phone(host)
    farm.clock.advance(24 * HOUR_S)
    farm.up_since = farm.clock.now()
    assert rounds.look() == []


def test_a_host_that_is_not_heard_of_is_one_alarm_however_many_phones_it_has(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    farm.clock.advance(2 * HOUR_S)
    farm.reap()
    assert rounds.look() == ["host_incident host:bench-1"]
    host.restart()
    host.exchange()
    assert rounds.look(1) == []


@pytest.mark.invariant("I21")
@pytest.mark.fault("21")
def test_a_phone_that_two_hosts_have_is_told_of_while_they_do(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    other = farm.host("bench-2")
    other.plug_in("phone-1")
    other.exchange()
    assert rounds.look(1) == ["identity_clash device:phone-1"]
    other.phones.clear()
    for _ in range(11):
        farm.clock.advance(60)
        host.exchange()
        other.exchange()
    assert rounds.look(1) == []


@pytest.mark.invariant("I21")
@pytest.mark.fault("21")
def test_several_phones_of_one_serial_number_on_a_host_are_told_of_while_they_are_there(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    before = host.phones["phone-1"]
    host.phones["phone-1"] = before.model_copy(
        update={"presence": Presence.OFFLINE, "claimants": ("usb-1", "usb-2")}
    )
    host.exchange()
    # An idle host's exchanges would pass over it else.
    assert not is_report_unchanged(farm.read(get_device, DeviceId("phone-1")), host.phones["phone-1"])
    assert rounds.look(1) == ["identity_clash device:phone-1"]
    assert farm.rows("SELECT message FROM alarms") == [
        {
            "message": "phone-1 is claimed twice: host bench-1 has several devices that claim this identity:"
            " usb-1, usb-2"
        }
    ]
    for _ in range(20):
        farm.clock.advance(60)
        host.exchange()
    assert rounds.look(1) == ["identity_clash device:phone-1"]
    host.phones["phone-1"] = before
    for _ in range(11):
        farm.clock.advance(60)
        host.exchange()
    host.earn_health()
    assert rounds.look(1) == []


def test_what_a_person_cleared_is_not_raised_again_for_a_day(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    silent_phone(host)
    farm.clock.advance(2 * HOUR_S)
    host.exchange()
    rounds.look(1)
    (alarm,) = farm.read(alarm_store.open_alarms)
    assert farm.write(
        bind_tx(alarm_store.clear_alarm, now=farm.clock.now(), actor="user:ann"),
        alarm.key,
        cause="a new cable is ordered",
    )
    host.exchange()
    assert rounds.look(1) == []
    farm.clock.advance(QUIET_AFTER_ACKNOWLEDGED.total_seconds())
    host.exchange()
    assert rounds.look(1) == ["device_silent device:phone-1"]


def test_a_queue_that_does_not_move_though_its_phone_could_work_is_told_of(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"}, rounds=5)
    farm.clock.advance(RULES.work_after.total_seconds() + 1)
    head = farm.rows(
        "SELECT cell_id FROM jobs WHERE matrix_id = :id ORDER BY virtual_time, job_id LIMIT 1", id=matrix_id
    )
    found = rounds.look(1)
    assert f"cell_silent cell:{head[0]['cell_id']}" in found
    host.run(limit=100)
    assert [each for each in rounds.look(1) if "cell" in each] == []


def test_a_deep_queue_that_moves_is_no_alarm(farm: FarmRig, host: HostRig, rounds: Rounds) -> None:
    farm.submit(devices={"device_id": "phone-1"}, rounds=5)
    host.run(limit=100)
    farm.submit(devices={"device_id": "phone-1"}, rounds=5)
    farm.clock.advance(RULES.work_after.total_seconds() + 1)
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    assert rounds.look(1) == []


def test_a_nightly_matrix_that_stops_is_told_of_once_and_no_more_when_it_goes_on(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    for _ in range(6):
        farm.submit(name="nightly", rounds=1)
        host.run(limit=100)
        farm.clock.advance(24 * HOUR_S)
        host.exchange()
    assert rounds.look(1) == []
    farm.clock.advance(49 * HOUR_S)
    host.exchange()
    assert rounds.look(1) == ["cell_silent series:1"]
    assert "had a result every 24 h 0 min" in str(farm.rows("SELECT message FROM alarms"))
    farm.submit(name="nightly", rounds=1)
    host.run(limit=100)
    assert rounds.look(1) == []


def test_a_series_whose_phone_is_away_is_no_second_alarm(
    farm: FarmRig, host: HostRig, rounds: Rounds
) -> None:
    for _ in range(6):
        farm.submit(name="nightly", rounds=1, devices={"device_id": "phone-1"})
        host.run(limit=100)
        farm.clock.advance(24 * HOUR_S)
        host.exchange()
    silent_phone(host)
    farm.clock.advance(timedelta(days=4).total_seconds())
    host.exchange()
    assert rounds.look(1) == ["device_silent device:phone-1"]
