"""Which USB controllers an agent calls full, and for how long."""

import asyncio
from pathlib import Path

import pytest

from agents.devices.backpressure import UsbCapacity, name_controllers
from farm.phone.adb.kernel_log import UsbRefusal

LASTS_S = 60.0
CONTROLLER = "0000:00:14.0"


def refusal(said: str = "no slot", *, at_s: float | None = None, controller: str = CONTROLLER) -> UsbRefusal:
    return UsbRefusal(controller=controller, bus=None, at_s=at_s, message=said)


def noted(
    room: UsbCapacity, now_s: float, *found: UsbRefusal, is_first: bool = False
) -> list[tuple[str, str]]:
    room.record([(each.controller or "", each) for each in found], now_s=now_s, is_first=is_first)
    return [(each.controller, each.message) for each in room.full]


@pytest.mark.fault(20)
def test_a_controller_is_full_until_it_refused_nothing_for_a_while() -> None:
    changed = asyncio.Event()
    room = UsbCapacity(changed, lasts_s=LASTS_S)
    assert noted(room, 100.0) == []
    assert not changed.is_set()
    assert noted(room, 100.0, refusal()) == [(CONTROLLER, "no slot")]
    assert changed.is_set()
    changed.clear()
    assert noted(room, 150.0, refusal()) == [(CONTROLLER, "no slot")]
    assert noted(room, 209.0) == [(CONTROLLER, "no slot")]
    assert not changed.is_set()
    assert noted(room, 210.0) == []
    assert changed.is_set()


@pytest.mark.fault(20)
def test_other_words_of_the_kernel_are_no_news_while_a_controller_is_full() -> None:
    room = UsbCapacity(asyncio.Event(), lasts_s=LASTS_S)
    assert noted(room, 1.0, refusal("first"), refusal("second")) == [(CONTROLLER, "first")]
    assert noted(room, 2.0, refusal("third")) == [(CONTROLLER, "first")]


def test_each_controller_is_told_of() -> None:
    room = UsbCapacity(asyncio.Event(), lasts_s=LASTS_S)
    assert noted(room, 1.0, refusal("b", controller="b"), refusal("a", controller="a")) == [
        ("a", "a"),
        ("b", "b"),
    ]
    room = UsbCapacity(asyncio.Event(), lasts_s=LASTS_S)
    assert len(noted(room, 1.0, *(refusal(controller=str(number)) for number in range(100)))) == 8


@pytest.mark.fault(20)
@pytest.mark.parametrize(("at_s", "is_full"), [(None, False), (30.0, False), (50.0, True), (101.0, True)])
def test_what_was_logged_before_the_agent_began_counts_from_when_it_was(
    at_s: float | None, is_full: bool
) -> None:
    room = UsbCapacity(asyncio.Event(), lasts_s=LASTS_S)
    assert bool(noted(room, 100.0, refusal(at_s=at_s), is_first=True)) is is_full
    assert bool(noted(room, 111.0)) is (is_full and at_s == 101.0)


@pytest.mark.fault(20)
def test_a_controller_is_told_by_the_bus_of_the_port_that_the_kernel_names(tmp_path: Path) -> None:
    controller = tmp_path / "pci0000:00" / "0000:00:14.0"
    (controller / "usb1").mkdir(parents=True)
    devices = tmp_path / "bus" / "usb" / "devices"
    devices.mkdir(parents=True)
    (devices / "usb1").symlink_to(controller / "usb1")
    found = [UsbRefusal(controller=None, bus=bus, at_s=None, message="no") for bus in (1, 7)]
    assert [name for name, _ in name_controllers([*found, refusal()], devices)] == [
        "0000:00:14.0",
        "usb7",
        CONTROLLER,
    ]
