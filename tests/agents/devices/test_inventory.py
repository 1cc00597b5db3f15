"""From adb's transports to phones and to what the farm is told of them."""

import pytest

from agents.devices.inventory import (
    DeliveredState,
    device_id,
    device_reports,
    find_conflicts,
    select_transports,
    to_wire_name,
    update_delivered,
)
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from tests.support.agents.factories import condition, facts, observation

PHONE = DeviceId("phone-1")


def test_a_phone_is_known_by_its_serial_number_whatever_adb_calls_it() -> None:
    assert device_id(observation("127.0.0.1:5555")) == "phone-1"


def test_a_usb_phone_that_never_answered_is_known_by_what_adb_calls_it() -> None:
    assert device_id(observation("R58M12ABC", Presence.UNAUTHORIZED)) == "R58M12ABC"


def test_a_tcp_transport_that_was_never_identified_is_no_one() -> None:
    assert device_id(observation("127.0.0.1:5555", Presence.OFFLINE)) is None
    assert select_transports([observation("127.0.0.1:5555", Presence.OFFLINE)]) == {}


def test_a_name_is_made_fit_for_the_wire() -> None:
    assert to_wire_name(" a b/c\x00d ") == "a-b-c-d"
    assert to_wire_name(" \n ") is None
    assert to_wire_name("x" * 200) == "x" * 128


def test_two_transports_of_one_phone_are_one_device_on_usb() -> None:
    both = [observation("127.0.0.1:5555"), observation("phone-1")]
    assert select_transports(both)[PHONE].serial == "phone-1"
    assert not find_conflicts(both)


def test_an_online_transport_is_preferred_to_one_that_is_not() -> None:
    both = [observation("127.0.0.1:5555"), observation("phone-1", Presence.OFFLINE, facts=facts())]
    assert select_transports(both)[PHONE].serial == "127.0.0.1:5555"


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
def test_two_phones_with_one_identity_are_both_refused() -> None:
    usb_and_tcp = [observation("phone-1", boot_id="a"), observation("127.0.0.1:5555", boot_id="b")]
    both_tcp = [observation("127.0.0.1:1"), observation("127.0.0.1:2")]
    for pair in (usb_and_tcp, both_tcp):
        phone = select_transports(pair)[PHONE]
        assert phone.presence is Presence.OFFLINE
        assert all(each.serial in (phone.detail or "") for each in pair)
        assert find_conflicts(pair) == {PHONE: tuple(sorted(each.serial for each in pair))}


def test_two_addresses_of_one_phone_are_one_device_when_both_show_its_mark() -> None:
    both = [observation("10.0.0.7:5555", mark="m"), observation("phone.lab:5555", mark="m")]
    assert select_transports(both)[PHONE].presence is Presence.ONLINE
    assert not find_conflicts(both)
    assert not find_conflicts([*both, observation("phone-1")])


@pytest.mark.parametrize(("one", "two"), [("m", "n"), ("m", None), (None, None)])
def test_two_addresses_that_do_not_show_the_same_mark_are_two_phones(
    one: str | None, two: str | None
) -> None:
    assert find_conflicts([observation("10.0.0.7:5555", mark=one), observation("phone.lab:5555", mark=two)])


def test_the_same_mark_after_another_boot_proves_nothing() -> None:
    both = [observation("10.0.0.7:5555", mark="m"), observation("phone.lab:5555", mark="m", boot_id="boot-2")]
    assert find_conflicts(both)


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
def test_two_phones_on_usb_are_two_whatever_they_show() -> None:
    assert find_conflicts([observation("phone-1"), observation("phone-1-again")])


def test_facts_and_conditions_travel_once() -> None:
    seen = {PHONE: observation(condition=condition())}
    first = device_reports(seen, {}, {})
    assert first[0].facts == facts()
    assert first[0].condition == condition()
    known = update_delivered({}, first, wanted=())
    second = device_reports(seen, {}, known)
    assert second[0].facts is None
    assert second[0].condition is None
    third = device_reports({PHONE: observation(condition=condition(31.0))}, {}, known)
    assert third[0].condition == condition(31.0)


def test_facts_travel_again_when_the_farm_asks_for_them() -> None:
    seen = {PHONE: observation()}
    known = update_delivered({}, device_reports(seen, {}, {}), wanted=(PHONE,))
    assert device_reports(seen, {}, known)[0].facts == facts()


def test_facts_travel_again_after_a_system_update() -> None:
    updated = facts(build_fingerprint="new")
    known = {PHONE: DeliveredState(facts=facts())}
    assert device_reports({PHONE: observation(facts=updated)}, {}, known)[0].facts == updated


def test_a_phone_that_no_one_cleaned_up_reports_no_fence() -> None:
    reports = device_reports({PHONE: observation()}, {DeviceId("other"): 3}, {})
    assert reports[0].cleaned_fence == 0
    assert device_reports({PHONE: observation()}, {PHONE: 3}, {})[0].cleaned_fence == 3
