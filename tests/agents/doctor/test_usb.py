"""Phones on USB, read from a made-up /sys, and what is said of them."""

import os
from pathlib import Path

import pytest

from agents.doctor.machine import ProcessInfo, UsbDevice, check_usb, read_usb_devices
from farm.core.operations.diagnostic import Severity

ADB, MTP = ("ff", "42", "01"), ("06", "01", "01")


def plug_in(
    root: Path, path: str, *interfaces: tuple[str, str, str], serial: str, bus: int = 1, number: int = 4
) -> Path:
    """A device as the kernel shows one; gives its node."""
    devices = root / "sys" / "bus" / "usb" / "devices"
    texts = {
        "serial": serial,
        "manufacturer": "Google",
        "product": "Pixel 8",
        "busnum": bus,
        "devnum": number,
    }
    for name, text in texts.items():
        write(devices / path / name, f"{text}\n")
    for index, kinds in enumerate(interfaces):
        names = ("bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol")
        for name, kind in zip(names, kinds, strict=True):
            write(devices / f"{path}:1.{index}" / name, f"{kind}\n")
    node = root / "dev" / "bus" / "usb" / f"{bus:03d}" / f"{number:03d}"
    write(node, "")
    return node


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def opened_by(root: Path, pid: int, node: Path) -> None:
    descriptors = root / "proc" / str(pid) / "fd"
    descriptors.mkdir(parents=True)
    (descriptors / "7").symlink_to(node)
    (root / "proc" / str(pid) / "cmdline").write_bytes(b"adb\0-L\0tcp:5037\0fork-server\0server\0")


def read(root: Path) -> list[UsbDevice]:
    return read_usb_devices(root / "sys", root / "dev", root / "proc")


def test_a_phone_is_known_by_adbs_interface_whoever_made_it(tmp_path: Path) -> None:
    node = plug_in(tmp_path, "1-2.3", MTP, ADB, serial="R58M12ABC")
    plug_in(tmp_path, "1-4", MTP, serial="a camera", number=5)
    (phone,) = read(tmp_path)
    assert (phone.path, phone.serial, phone.name) == ("1-2.3", "R58M12ABC", "Google Pixel 8")
    assert (phone.node, phone.is_openable, phone.users) == (node, True, ())
    (finding,) = check_usb([phone], own_server_pid=None)
    assert (finding.level, "R58M12ABC" in finding.message) == (Severity.OK, True)


def test_a_phone_that_says_nothing_of_itself_is_shown_by_its_place(tmp_path: Path) -> None:
    plug_in(tmp_path, "1-2", ADB, serial="x")
    for name in ("serial", "manufacturer", "product"):
        (tmp_path / "sys" / "bus" / "usb" / "devices" / "1-2" / name).unlink()
    (finding,) = check_usb(read(tmp_path), None)
    assert "USB 1-2" in finding.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_node_without_permission_is_read_as_such(tmp_path: Path) -> None:
    plug_in(tmp_path, "1-2", ADB, serial="x").chmod(0)
    assert [phone.is_openable for phone in read(tmp_path)] == [False]


def test_a_phone_that_cannot_be_opened_is_a_problem_with_the_rules_as_a_hint() -> None:
    phone = UsbDevice(path="1-2", serial="x", name="y", node=Path("/dev/n"), is_openable=False)
    (finding,) = check_usb([phone], None)
    assert finding.level is Severity.PROBLEM
    assert "51-benchfarm.rules" in (finding.hint or "")


def test_a_container_without_the_nodes_is_told_so(tmp_path: Path) -> None:
    plug_in(tmp_path, "1-2", ADB, serial="x").unlink()
    (finding,) = check_usb(read(tmp_path), None)
    assert finding.level is Severity.PROBLEM
    assert "container" in (finding.hint or "")


def test_who_holds_a_phone_is_named_unless_it_is_our_own_server(tmp_path: Path) -> None:
    opened_by(tmp_path, 321, plug_in(tmp_path, "1-2", ADB, serial="x"))
    phones = read(tmp_path)
    assert phones[0].users == (ProcessInfo(pid=321, command="adb -L tcp:5037 fork-server server"),)
    (finding,) = check_usb(phones, own_server_pid=1)
    assert finding.level is Severity.WARNING
    assert "pid 321: adb -L tcp:5037" in finding.message
    assert [each.level for each in check_usb(phones, own_server_pid=321)] == [Severity.OK]


def test_a_machine_without_usb_has_nothing_to_mend(tmp_path: Path) -> None:
    assert [each.level for each in check_usb(read(tmp_path), None)] == [Severity.OK]
