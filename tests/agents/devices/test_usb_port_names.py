"""Phones that are known by where they are plugged in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.devices.inventory import (
    TransportObservation,
    device_id,
    find_conflicts,
    is_usb,
    select_transports,
)
from agents.host.config import AgentConfig
from agents.host.usb_ports import device_names, find_port, states_by_port
from farm.core.devices.device import DeviceFacts, Presence
from farm.phone.adb.listing import SEVERAL, AdbDeviceRow

LEFT, RIGHT = "usb:1-4.2", "usb:1-4.3"
NAMES = {LEFT: "left", RIGHT: "right"}


def row(path: str | None, *, serial: str = "0123456789ABCDEF", state: str = "device") -> AdbDeviceRow:
    return AdbDeviceRow(serial=serial, state=state, usb_path=path)


def test_places_are_named_as_adb_is_asked_with_them() -> None:
    text = "1-4.2=left, usb:1-4.3 = right,10.0.0.5:5555=shelf-3"
    assert device_names(text) == {**NAMES, "10.0.0.5:5555": "shelf-3"}
    assert device_names("") == {}


@pytest.mark.parametrize(
    "text", ["1-4.2", "1-4.2=", "=left", "left=1-4.2", "1-4.2=a,1-4.2=b", "1-4.2=a,1-4.3=a", "1-4.2=a=b"]
)
def test_what_names_no_place_or_one_of_them_twice_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"1-4|place|HOST:PORT|PLACE"):
        device_names(text)
    with pytest.raises(ValidationError):
        AgentConfig.model_validate({"data_dir": tmp_path, "device_names": text})


def test_a_setting_names_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARM_AGENT_DEVICE_NAMES", "1-4.2=left,1-4.3=right")
    assert AgentConfig(data_dir=tmp_path).device_names == NAMES
    with pytest.raises(ValidationError, match="pattern"):
        AgentConfig.model_validate({"data_dir": tmp_path, "device_names": "1-4.2=a b"})


@given(st.text())
def test_any_text_is_names_or_refused(text: str) -> None:
    try:
        found = device_names(text)
    except ValueError:
        return
    assert len(set(found.values())) == len(found)


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
def test_phones_of_one_serial_number_are_two_where_both_their_ports_have_names() -> None:
    rows = [row("1-4.2"), row("1-4.3", state="unauthorized"), row("1-5", serial="other")]
    assert states_by_port(rows, NAMES) == {LEFT: "device", RIGHT: "unauthorized", "other": "device"}
    assert states_by_port(rows[:2], {LEFT: "left"}) == {LEFT: "device", "0123456789ABCDEF": "unauthorized"}
    assert states_by_port([row("1-4.2"), row("1-6")], {}) == {"0123456789ABCDEF": SEVERAL}


@pytest.mark.invariant("I21")
@pytest.mark.fault(21)
def test_who_is_at_a_named_place_is_told_by_its_name_alone() -> None:
    facts = DeviceFacts(serialno="0123456789ABCDEF", device_model="x", work_root="/data/local/tmp")
    left, right = (
        TransportObservation(serial=place, presence=Presence.ONLINE, facts=facts, boot_id=name, name=name)
        for place, name in NAMES.items()
    )
    assert [device_id(each) for each in (left, right)] == ["left", "right"]
    assert find_conflicts([left, right]) == {}
    assert set(select_transports([left, right])) == {"left", "right"}
    assert not left.is_tcp
    assert not left.is_reachable_elsewhere
    assert is_usb(LEFT)


def test_the_port_of_a_phone_is_told_by_its_name_or_by_the_listing() -> None:
    rows = [row("1-5", serial="other"), row(None, serial="10.0.0.5:5555")]
    assert find_port(LEFT, rows) == "1-4.2"
    assert find_port("other", rows) == "1-5"
    assert find_port("10.0.0.5:5555", rows) is None
    assert find_port("gone", rows) is None
