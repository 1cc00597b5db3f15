"""A phone for a person: out of the pool, back by way of a check."""

import pytest

from farm.core.devices.admin import AdminEvent
from farm.core.errors import Conflict, HostError
from farm.database.transaction import bind_tx
from farm.services.agents.sessions import open_session
from farm.services.devices.admin import change_admin, retire
from farm.services.devices.reservations import adb_access, end_overdue_reservations, release, reserve
from farm.services.devices.views import device_named
from farm.store.devices import transitions as device_transitions
from farm.wire.agents.protocol import SessionOpening
from farm.wire.documents.devices import DeviceChange, OperatorRequest, ReleaseRequest, ReservationRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, plan_of

#: Of the agent's own adb server.
ADDRESS = "localfilesystem:/var/lib/benchfarm/agent/adb/socket"


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with a healthy phone that has two jobs queued."""
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    farm.variant()
    farm.variant("int8-core")
    farm.submit(rounds=1)
    return host


def held(farm: FarmRig, by: str = "anna", for_s: int = 3600) -> DeviceChange:
    return farm.write(
        bind_tx(reserve, now=farm.clock.now()), "phone-1", ReservationRequest(by=by, for_s=for_s)
    )


def released(farm: FarmRig, by: str = "anna", *, force: bool = False) -> DeviceChange:
    return farm.write(bind_tx(release, now=farm.clock.now()), "phone-1", ReleaseRequest(by=by, force=force))


def next_harness(host: HostRig) -> str | None:
    return next((plan_of(each).harness for each in host.exchange().assignments), None)


def last_device_events(farm: FarmRig) -> list[tuple[str, str]]:
    sql = "SELECT actor, kind FROM events WHERE subject = 'device' ORDER BY event_id DESC LIMIT 2"
    return [(row["actor"], row["kind"]) for row in farm.rows(sql)]


@pytest.mark.invariant("I14")
def test_a_held_phone_gets_no_work_and_says_for_whom(farm: FarmRig, host: HostRig) -> None:
    view = held(farm).device
    assert (view.reserved_by, view.blocked_by, view.advice) == (
        "anna",
        ("reserved",),
        "farm device release phone-1",
    )
    assert next_harness(host) is None


@pytest.mark.invariant("I7")
def test_a_run_under_way_ends_before_the_person_has_the_phone(farm: FarmRig, host: HostRig) -> None:
    (running,) = host.exchange().assignments
    assert not held(farm).device.is_quiet
    with pytest.raises(Conflict, match="not over yet"):
        farm.read(adb_access, "phone-1", "anna")
    host.report(running.attempt_id, good_evidence(running))
    host.clean(running)
    assert next_harness(host) is None
    # The phone is clean and nothing of ours is on it: it says so by being held alone.
    assert released(farm).changed


@pytest.mark.invariant("I14")
def test_a_phone_is_checked_after_it_was_in_a_persons_hands(farm: FarmRig, host: HostRig) -> None:
    held(farm)
    released(farm)
    assert next_harness(host) == "device_check"
    assert last_device_events(farm) == [("farm", "device_health_changed"), ("user:anna", "device_released")]


def test_benchmarks_go_on_once_the_check_was_passed(farm: FarmRig, host: HostRig) -> None:
    held(farm)
    released(farm)
    assert host.run() == 3


def test_a_bad_phone_that_was_in_hand_is_checked_again(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-1")
    host.run(device_trouble)
    assert farm.rows("SELECT health FROM devices") == [{"health": "bad"}]
    held(farm)
    released(farm)
    assert next_harness(host) == "device_check"


def test_a_hold_ends_automatically_when_its_time_is_over(farm: FarmRig, host: HostRig) -> None:
    held(farm, for_s=60)
    farm.clock.advance(59)
    farm.write(bind_tx(end_overdue_reservations, now=farm.clock.now()))
    assert next_harness(host) is None
    farm.clock.advance(1)
    farm.write(bind_tx(end_overdue_reservations, now=farm.clock.now()))
    assert next_harness(host) == "device_check"
    assert ("farm", "device_released") in last_device_events(farm)


def test_the_own_hold_gets_a_new_end_and_another_persons_is_refused(farm: FarmRig, host: HostRig) -> None:
    first = held(farm).device.reserved_until
    farm.clock.advance(600)
    extended = held(farm).device.reserved_until
    assert first is not None
    assert extended is not None
    assert (extended - first).total_seconds() == 600
    with pytest.raises(Conflict, match=f"reserved by anna until {extended:%Y-%m-%d %H:%M} UTC"):
        held(farm, "bert")


def test_of_two_persons_with_one_view_of_a_phone_one_gets_it(farm: FarmRig, host: HostRig) -> None:
    seen, now = farm.read(device_named, "phone-1"), farm.clock.now()
    taken = [
        farm.write(
            bind_tx(device_transitions.put_reservation, now=now, actor=f"user:{by}"),
            seen,
            by=by,
            until=now,
            cause="test",
        )
        for by in ("anna", "bert")
    ]
    assert taken == [True, False]
    assert farm.read(device_named, "phone-1").reserved_by == "anna"


@pytest.mark.invariant("I11")
@pytest.mark.fault(43)
def test_a_hold_that_was_extended_in_between_is_not_ended_by_a_tick_that_saw_the_old_end(
    farm: FarmRig, host: HostRig
) -> None:
    held(farm, for_s=60)
    seen = farm.read(device_named, "phone-1")
    held(farm, for_s=3600)
    now = farm.clock.now()
    assert not farm.write(
        bind_tx(device_transitions.end_reservation, now=now), seen, cause="its time is over"
    )


def test_another_persons_hold_is_ended_by_force_only(farm: FarmRig, host: HostRig) -> None:
    held(farm)
    with pytest.raises(Conflict, match="reserved by anna") as refused:
        released(farm, "bert")
    assert "--force" in refused.value.hint
    assert released(farm, "bert", force=True).changed
    (event,) = farm.rows("SELECT cause FROM events WHERE kind = 'device_released'")
    assert event["cause"] == "bert ended the reservation of anna"
    assert released(farm, "bert").changed is False


def test_a_held_phone_is_not_retired_by_someone_else(farm: FarmRig, host: HostRig) -> None:
    held(farm)
    with pytest.raises(Conflict, match="reserved by anna"):
        farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="bert"))
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="anna"))
    with pytest.raises(Conflict, match="is retired"):
        held(farm)


def test_a_cordoned_phone_stays_cordoned_after_a_hold_and_is_checked_later(
    farm: FarmRig, host: HostRig
) -> None:
    cordoned = OperatorRequest(by="anna", reason="it is odd")
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.CORDONED, cordoned)
    held(farm)
    released(farm)
    assert next_harness(host) is None
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-1", AdminEvent.UNCORDONED, cordoned)
    assert next_harness(host) == "device_check"


def test_adb_is_for_who_holds_the_phone_and_its_server_is_where_its_agent_said(
    farm: FarmRig, host: HostRig
) -> None:
    with pytest.raises(Conflict, match="not reserved by you") as refused:
        farm.read(adb_access, "phone-1", "anna")
    assert refused.value.hint == "reserve it first: farm device reserve phone-1 --for 1h"
    held(farm)
    with pytest.raises(Conflict, match="reserved by anna"):
        farm.read(adb_access, "phone-1", "bert")
    with pytest.raises(HostError, match="does not say where"):
        farm.read(adb_access, "phone-1", "anna")
    opening = SessionOpening(boot_id="boot-2", agent_version="test", adb_address=ADDRESS)
    farm.write(bind_tx(open_session, now=farm.clock.now()), host.host_id, opening)
    access = farm.read(adb_access, "phone-1", "anna")
    assert (access.host, access.boot_id) == ("bench-1", "boot-2")
    assert (access.adb_address, access.serial) == (ADDRESS, "phone-1")
