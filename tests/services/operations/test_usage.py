"""The usage of devices in a week, from what the farm records while it works."""

from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Presence
from farm.core.devices.host_state import HostEvent
from farm.core.errors import InvalidInput
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.usage import UsageState, week_before, week_of
from farm.core.upkeep.device_action import DeviceActionKind
from farm.database.transaction import bind_tx
from farm.services.devices.admin import change_admin, retire
from farm.services.devices.reservations import release, reserve
from farm.services.hosts.admin import change_host
from farm.services.operations.usage import usage_in_week
from farm.services.upkeep.device_actions import request_device_action
from farm.wire.agents.protocol import Assignment, AttemptReport, DeviceActionReport, Exchange
from farm.wire.documents.devices import OperatorRequest, ReleaseRequest, ReservationRequest, UsageView
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, phase, phone

ANN = OperatorRequest(by="ann", reason="test")


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with a healthy phone at the beginning of a week; its check took a second."""
    _monday(farm)
    return farm.healthy_host("phone-1")


def _monday(farm: FarmRig) -> None:
    """Advance the clock to the beginning of a week."""
    now = farm.clock.now()
    farm.clock.advance((week_of(now).end - now).total_seconds())


def usage(farm: FarmRig, week: str | None = None) -> UsageView:
    return farm.read(usage_in_week, week, now=farm.clock.now())


def seconds(farm: FarmRig, week: str | None = None) -> dict[str, float]:
    """The seconds of each state of the only device; states without any left out."""
    (device,) = usage(farm, week).devices
    assert round(sum(device.shares_pct.values()), 6) == 100
    assert sum(device.seconds.values()) == pytest.approx(device.known_s)
    return {state.value: time_s for state, time_s in device.seconds.items() if time_s}


def claim(farm: FarmRig, host: HostRig) -> Assignment:
    if not farm.rows("SELECT 1 FROM jobs WHERE state = 'queued'"):
        farm.variant()
        farm.variant("int8-core")
        farm.submit(rounds=1)
    (assignment,) = host.exchange().assignments
    return assignment


def unfit(assignment: Assignment) -> AttemptReport:
    told = phase(assignment, AttemptState.PREPARING)
    return told.model_copy(update={"waiting_for": "skin 41.0 C, at most 38.0 C"})


def test_a_run_is_told_apart_into_preparing_cooling_and_measuring(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(100)
    run = claim(farm, host)
    farm.clock.advance(3)
    host.exchange([phase(run, AttemptState.PREPARING)])
    farm.clock.advance(2)
    host.exchange([unfit(run)])
    farm.clock.advance(20)
    # Again, and with another reason: the device is unfit since the first one.
    host.exchange([unfit(run).model_copy(update={"waiting_for": "battery 9 %"})])
    farm.clock.advance(10)
    host.exchange([phase(run, AttemptState.PREPARING)])
    host.exchange([phase(run, AttemptState.MEASURING)])
    farm.clock.advance(40)
    host.report(run.attempt_id, good_evidence(run))
    farm.clock.advance(5)
    assert seconds(farm) == {
        "checking": 1,
        "waiting": 105,
        "preparing": 5,
        "cooling": 30,
        "measuring": 40,
    }


def test_a_deferred_job_counts_as_cooling_until_it_is_claimed_again(farm: FarmRig, host: HostRig) -> None:
    run = claim(farm, host)
    farm.clock.advance(1)
    host.exchange([unfit(run)])
    farm.clock.advance(2)
    host.exchange([phase(run, AttemptState.RETURNED, "skin 41.0 C, at most 38.0 C")])
    farm.clock.advance(30)
    host.clean(run)
    again = claim(farm, host)
    host.exchange([phase(again, AttemptState.MEASURING)])
    farm.clock.advance(7)
    assert seconds(farm) == {"checking": 1, "preparing": 1, "cooling": 32, "measuring": 7}


def test_checks_and_device_actions_are_checking(farm: FarmRig) -> None:
    _monday(farm)
    host = farm.host()
    host.plug_in("phone-1")
    (check,) = host.exchange().assignments
    farm.clock.advance(30)
    host.report(check.attempt_id, good_evidence(check))
    host.clean(check)
    farm.clock.advance(60)
    action = farm.write(
        bind_tx(request_device_action, now=farm.clock.now()), "phone-1", DeviceActionKind.CLEAN, ANN
    )
    farm.clock.advance(8)
    done = DeviceActionReport(device_action_id=action.device_action_id, done="cleaned")
    host.seq += 1
    host.call(Exchange(seq=host.seq, devices=tuple(host.phones.values()), device_actions=(done,)))
    farm.clock.advance(2)
    assert seconds(farm) == {"checking": 38, "waiting": 62}


def test_offline_reserved_and_cordoned_devices_and_those_of_a_drained_host_are_away(
    farm: FarmRig, host: HostRig
) -> None:
    host.phones["phone-1"] = phone("phone-1", presence=Presence.OFFLINE)
    host.exchange()
    farm.clock.advance(1)
    host.plug_in("phone-1")
    host.exchange()
    farm.write(bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by="ann", for_s=3600))
    farm.clock.advance(2)
    farm.write(bind_tx(release, now=farm.clock.now()), "phone-1", ReleaseRequest(by="ann"))
    host.run()
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.CORDONED, ANN)
    farm.clock.advance(4)
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.UNCORDONED, ANN)
    farm.clock.advance(100)
    for event in (HostEvent.DRAINED, HostEvent.ACTIVATED):
        farm.write(bind_tx(change_host, now=farm.clock.now()), "bench-1", event, ANN)
        farm.clock.advance(8)
    assert seconds(farm) == {"away": 15, "checking": 2, "waiting": 108}


def test_a_state_that_lasts_counts_in_the_weeks_after_the_change(farm: FarmRig, host: HostRig) -> None:
    run = claim(farm, host)
    host.exchange([phase(run, AttemptState.MEASURING)])
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.CORDONED, ANN)
    first = week_of(farm.clock.now()).name
    _monday(farm)
    farm.clock.advance(10)
    host.report(run.attempt_id, good_evidence(run))
    _monday(farm)
    farm.clock.advance(60)
    week_s = timedelta(days=7).total_seconds()
    assert seconds(farm, first) == {"checking": 1, "measuring": week_s - 1}
    second = week_before(week_of(farm.clock.now()))
    assert seconds(farm, second.name) == {"measuring": 10, "away": week_s - 10}
    assert seconds(farm) == {"away": 60}


def test_only_the_time_that_is_known_counts(farm: FarmRig, host: HostRig) -> None:
    began_at = week_of(farm.clock.now()).begin
    farm.clock.advance(3599)
    host.plug_in("phone-2")
    host.exchange()
    farm.clock.advance(3600)
    view = usage(farm)
    assert (view.known_since, view.end) == (began_at, farm.clock.now())
    assert [(device.device_id, device.known_s) for device in view.devices] == [
        ("phone-1", 7200),
        ("phone-2", 3600),
    ]
    (model,) = view.models
    assert (model.device_model, model.devices, model.known_s) == ("virtual phone", 2, 10800)
    for other in (week_before(week_of(began_at)).name, "2099-W01"):
        assert (usage(farm, other).devices, usage(farm, other).models) == ((), ())


def test_a_retired_device_counts_until_then(farm: FarmRig, host: HostRig) -> None:
    farm.clock.advance(50)
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", ANN)
    farm.clock.advance(50)
    assert seconds(farm) == {"checking": 1, "waiting": 50}
    _monday(farm)
    farm.clock.advance(1)
    assert usage(farm).devices == ()


def test_a_device_of_which_old_history_was_removed_is_known_since_the_oldest_that_is_left(
    farm: FarmRig, host: HostRig
) -> None:
    first = week_of(farm.clock.now()).name
    _monday(farm)
    farm.clock.advance(100)
    host.phones["phone-1"] = phone("phone-1", presence=Presence.OFFLINE)
    host.exchange()
    farm.clock.advance(50)
    views: list[UsageView] = []

    def look(connection: Connection) -> None:
        went = "kind = 'device_presence_changed' AND from_state = 'absent'"
        connection.exec_driver_sql(f"DELETE FROM events WHERE {went}")
        views.extend(usage_in_week(connection, week, now=farm.clock.now()) for week in (first, None))
        raise RolledBack

    with pytest.raises(RolledBack):
        farm.write(look)
    before, now = views
    assert before.devices == ()
    (device,) = now.devices
    assert (device.known_s, device.shares_pct[UsageState.AWAY]) == (50, 100)


class RolledBack(Exception):
    """What was removed is put back: other checks need it."""


def test_a_farm_without_devices_knows_nothing(farm: FarmRig) -> None:
    view = usage(farm)
    assert (view.known_since, view.devices, view.models) == (None, (), ())


def test_a_week_that_does_not_exist_is_refused(farm: FarmRig) -> None:
    with pytest.raises(InvalidInput, match="'2026-W54' is not a week"):
        usage(farm, "2026-W54")
