"""Rows of `adb devices -l`, invented and captured."""

from pathlib import Path

import pytest

from farm.phone.adb.listing import AdbDeviceRow, adb_device_rows
from tests.phone.adb.capture_text import decode_output

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")


@pytest.mark.parametrize(
    ("row", "phone"),
    [
        (
            "A1B2\tdevice usb:1-4.2 product:one model:One_9 device:one transport_id:7",
            AdbDeviceRow(
                serial="A1B2",
                state="device",
                usb_path="1-4.2",
                product="one",
                model="One_9",
                device="one",
                transport_id=7,
            ),
        ),
        ("A1B2       recovery 2-7 new:thing", AdbDeviceRow(serial="A1B2", state="recovery", usb_path="2-7")),
        ("10.1.2.3:5555\toffline", AdbDeviceRow(serial="10.1.2.3:5555", state="offline")),
        (
            "adb-99 (3)._adb-tls-connect._tcp offline transport_id:9",
            AdbDeviceRow(serial="adb-99 (3)._adb-tls-connect._tcp", state="offline", transport_id=9),
        ),
        (
            "A1B2 no permissions (user x is not in plugdev); see [http://a.b] usb:3-1 transport_id:1",
            AdbDeviceRow(
                serial="A1B2",
                state="no permissions (user x is not in plugdev); see [http://a.b]",
                usb_path="3-1",
                transport_id=1,
            ),
        ),
        ("????????????\tno permissions", AdbDeviceRow(serial="????????????", state="no permissions")),
    ],
)
def test_a_row_is_a_phone(row: str, phone: AdbDeviceRow) -> None:
    assert adb_device_rows(f"List of devices attached\r\n{row}\r\n\r\n") == (phone,)


def test_what_adb_tells_of_itself_is_no_phone() -> None:
    text = "* daemon not running; starting now at tcp:5037\nList of devices attached\nA\tdevice\n"
    text += (
        "adb server version (99) doesn't match this client (41); killing...\n* daemon started successfully\n"
    )
    assert [phone.serial for phone in adb_device_rows(text)] == ["A"]


@needs_captures
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("adb_devices_l_crlf", [("0123456789abcdef", "device", "2-1"), ("192.168.1.1:5555", "device", None)]),
        ("adb_devices_l_devpath_without_colon", [("12345678", "device", "3-1")]),
        (
            "adb_devices_l_mdns_serial_with_spaces",
            [("adb-0123456789AB-CDdefg (2)._adb-tls-connect._tcp", "device", None)],
        ),
        ("adb_devices_l_recovery_twrp_line", [("KB00A000000", "recovery", None)]),
        (
            "adb_devices_l_version_mismatch_mixed",
            [("0123456789abcdef", "unauthorized", "1-1"), ("87654321", "device", "2-1")],
        ),
        ("adb_devices_offline_cf264b8f", [("cf264b8f", "offline", None)]),
        ("adb_err_insufficient_permissions", []),
        ("adb_sideload_device_offline", []),
        ("adb_push_ok_and_skipped", []),
    ],
)
def test_a_captured_listing_has_its_phones(name: str, rows: list[tuple[str, str, str | None]]) -> None:
    found = adb_device_rows(decode_output((CAPTURES / f"device-state/{name}.txt").read_bytes()))
    assert [(phone.serial, phone.state, phone.usb_path) for phone in found] == rows


@pytest.mark.parametrize(
    "talk",
    [
        "- waiting for device -",
        "adb.exe: device offline",
        "List of device",
        "adb: no devices/emulators found",
    ],
)
def test_what_adb_says_is_no_phone(talk: str) -> None:
    assert adb_device_rows(f"{talk}\n") == adb_device_rows(talk) == ()


def test_the_last_word_of_a_listing_that_may_be_cut_tells_nothing() -> None:
    row = "A1B2 device usb:1-4 product:one model:One_9 device:one transport_id:1"
    (cut,), (whole,) = adb_device_rows(row), adb_device_rows(f"{row}\n")
    assert (cut.model, cut.device, cut.transport_id) == ("One_9", "one", None)
    assert whole.transport_id == 1


@pytest.mark.parametrize(
    "talk",
    [
        "adb E  2718  2718 usb_acme.cpp:77] unable to get device descriptor: ACME_ERROR_IO",
        "connected to host",
        "Otherwise check for a confirmation dialog on your device now",
        "> A1B2 device usb:1-4",
        "3\tA1B2\tdevice",
    ],
)
def test_a_sentence_with_a_states_word_in_it_is_no_phone(talk: str) -> None:
    assert adb_device_rows(f"{talk}\n") == ()


@pytest.mark.parametrize("serial", ["(no serial number)", "0123 4567", "adb-99 (3)._adb-tls-connect._tcp."])
def test_a_serial_may_have_blanks_where_its_end_can_be_seen(serial: str) -> None:
    (found,) = adb_device_rows(f"{serial:<22} device usb:1-4\n")
    assert (found.serial, found.state, found.usb_path) == (serial, "device", "1-4")
