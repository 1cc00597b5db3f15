"""A phone that starts again and again, and never comes up, is shown as bad (FAULTS 5)."""

import pytest

from farm.core.devices.device import Presence
from tests.support.farm.service_fixture import FarmRig, HostRig, phone

CYCLE_S = 100.0


def loops(farm: FarmRig, host: HostRig, times: int, *, devices: tuple[str, ...] = ("phone-1",)) -> None:
    """Have phones vanish and begin to start so often."""
    for _ in range(times):
        for presence in (Presence.ABSENT, Presence.BOOTING):
            host.phones |= {name: phone(name, presence=presence) for name in devices}
            host.exchange()
        farm.clock.advance(CYCLE_S)


def health(farm: FarmRig, device_id: str = "phone-1") -> str:
    return farm.rows("SELECT health FROM devices WHERE device_id = :id", id=device_id)[0]["health"]


@pytest.mark.fault(5)
def test_a_phone_in_a_boot_loop_turns_bad_and_its_event_says_why(farm: FarmRig, host: HostRig) -> None:
    loops(farm, host, 4)
    assert health(farm) == "bad"
    (event,) = farm.rows(
        "SELECT cause FROM events WHERE subject_id = 'phone-1' AND kind = 'device_health_changed' "
        "AND to_state = 'bad'"
    )
    assert event["cause"] == "it began to start 4 times within 5 min and never came up"


def test_a_phone_that_came_up_in_between_is_in_no_loop(farm: FarmRig, host: HostRig) -> None:
    loops(farm, host, 2)
    host.phones["phone-1"] = phone("phone-1")
    host.exchange()
    loops(farm, host, 3)
    assert health(farm) == "good"


def test_a_phone_that_takes_long_for_one_start_is_in_no_loop(farm: FarmRig, host: HostRig) -> None:
    loops(farm, host, 1)
    farm.clock.advance(600.0)
    loops(farm, host, 1)
    assert health(farm) == "good"


@pytest.mark.fault(5)
def test_a_phone_that_comes_up_after_all_is_checked_before_it_gets_work(farm: FarmRig, host: HostRig) -> None:
    loops(farm, host, 4)
    host.phones["phone-1"] = phone("phone-1")
    host.exchange()
    host.earn_health()
    assert health(farm) == "good"


@pytest.mark.invariant("I15")
@pytest.mark.fault(5)
def test_phones_that_loop_together_are_their_hosts_incident(farm: FarmRig, host: HostRig) -> None:
    names = ("phone-1", "phone-2")
    for name in names:
        host.plug_in(name)
    host.earn_health()
    loops(farm, host, 4, devices=names)
    assert [health(farm, name) for name in names] == ["good", "good"]
