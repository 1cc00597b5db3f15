"""Which lines of a kernel's log say that a USB controller takes no further device."""

import pytest

from farm.phone.adb.kernel_log import UsbRefusal, usb_refusals

SLOT = "xhci_hcd 0000:00:14.0: Error while assigning device slot ID: No Slots Available Error"
NO_RESOURCES = "usb 3-1.4: Not enough host controller resources for new device state."


def refused(said: str, *, at_s: float | None = None, controller: str | None = "0000:00:14.0") -> UsbRefusal:
    return UsbRefusal(controller=controller, bus=None if controller else 3, at_s=at_s, message=said)


@pytest.mark.fault(20)
@pytest.mark.parametrize(
    "message",
    [
        SLOT,
        "xhci_hcd 0000:00:14.0: Error while assigning device slot ID",
        "xhci_hcd 0000:00:14.0: Not enough host resources, active endpoint contexts = 64",
    ],
)
def test_a_controller_that_refuses_a_device_is_named(message: str) -> None:
    assert usb_refusals(message) == (refused(message.split(": ", 1)[1]),)


@pytest.mark.fault(20)
@pytest.mark.parametrize(
    "said",
    [
        "Not enough host controller resources for new device state.",
        "can't set config #1, error -12",
        "can't set config #1, error -28",
    ],
)
def test_a_device_that_is_refused_names_its_bus(said: str) -> None:
    assert usb_refusals(f"usb 3-1.4: {said}") == (refused(said, controller=None),)


def test_a_controller_that_is_no_pci_card_is_named_as_the_kernel_does() -> None:
    (found,) = usb_refusals("tegra-xusb 3610000.usb: Error while assigning device slot ID")
    assert found.controller == "3610000.usb"


@pytest.mark.parametrize(
    ("line", "at_s"),
    [
        (SLOT, None),
        (f"[ 4711.250000] {SLOT}", 4711.25),
        (f"[ 4711.250000] bench-1 kernel: {SLOT}", 4711.25),
        (f"[Sun Nov 22 01:02:03 2026] {SLOT}", None),
        (f"Nov 22 01:02:03 bench-1 kernel: [ 4711.250000] {SLOT}", 4711.25),
        (f"2026-11-22T01:02:03.5+00:00 bench-1 kernel: {SLOT}", None),
        (f"3,1812,4711250000,-;{SLOT}", 4711.25),
        (f"3,1812,4711250000,-,caller=T12;{SLOT}\r", 4711.25),
    ],
)
def test_a_line_is_found_however_the_log_is_written(line: str, at_s: float | None) -> None:
    assert usb_refusals(f"{line}\n SUBSYSTEM=pci\n") == (refused(SLOT.split(": ", 1)[1], at_s=at_s),)


@pytest.mark.parametrize(
    "line",
    [
        # A camera that wants a larger stream than is left; it is there, and works at a smaller one.
        "usb 3-1.4: Not enough bandwidth for new device state.",
        "usb 3-1.4: Not enough bandwidth for altsetting 6",
        # The device's own trouble, or its cable's.
        "usb 3-1.4: can't set config #1, error -32",
        "usb 3-1.4: device descriptor read/64, error -110",
        # A controller that hangs.
        "xhci_hcd 0000:00:14.0: Error while assigning device slot ID: Command Aborted",
        # One transfer is too large for its queue.
        "xhci_hcd 0000:00:14.0: ERROR no room on ep ring, try ring expansion",
        "xhci_hcd 0000:00:14.0: Max number of devices this xHCI host supports is 64.",
        f"usb 3-1.4: Product: {NO_RESOURCES}",
        f"usb 3-1.4: Product: {SLOT}",
        "3,1812,4711250000,-;usb 3-1.4: New USB device found, idVendor=18d1, idProduct=4ee7",
    ],
)
def test_other_trouble_with_usb_is_no_lack_of_room(line: str) -> None:
    assert usb_refusals(line) == ()


def test_all_lines_are_given_in_their_order() -> None:
    text = f"[ 1.5] {NO_RESOURCES}\n[ 1.6] usb 3-1.4: can't set config #1, error -12\n[ 2.0] {SLOT}\n"
    assert [refusal.at_s for refusal in usb_refusals(text)] == [1.5, 1.6, 2.0]


def test_a_controller_that_hung_is_not_out_of_slots_because_none_was_assigned() -> None:
    bare = SLOT.removesuffix(": No Slots Available Error")
    hung = "[ 1.0] xhci_hcd 0000:00:14.0: Command timeout\n[ 1.1] xhci_hcd 0000:00:14.0: Abort command ring\n"
    other = bare.replace("00:14.0", "03:00.0")
    text = f"{hung}[ 1.2] {bare}\n[ 1.3] {other}\n[ 1.4] {SLOT}\n"
    assert [refusal.at_s for refusal in usb_refusals(text)] == [1.3, 1.4]
    assert [refusal.at_s for refusal in usb_refusals(f"[ 0.5] {bare}\n{hung}")] == [0.5]


@pytest.mark.fault(20)
def test_a_controller_that_hung_long_ago_may_be_full_now() -> None:
    bare = "xhci_hcd 0000:00:14.0: Error while assigning device slot ID"
    hung = "[   10.000000] xhci_hcd 0000:00:14.0: Timeout while waiting for setup device command\n"
    assert usb_refusals(f"{hung}[   12.000000] {bare}\n") == ()
    (found,) = usb_refusals(f"{hung}[ 9000.000000] {bare}\n")
    assert (found.controller, found.at_s) == ("0000:00:14.0", 9000.0)
