"""The settings our adb server runs with."""

from pathlib import Path

from agents.adb.server import server_environment

FOLDER = Path("/folder")
OPERATOR = {
    "HOME": "/home/op",
    "PATH": "/bin",
    "ADB_TRACE": "all",
    "ADB_MDNS": "1",
    "ANDROID_ADB_SERVER_PORT": "5037",
}


def test_the_operators_adb_settings_do_not_leak_into_our_server() -> None:
    environment = server_environment(OPERATOR, FOLDER, True, None)

    assert environment == {
        "HOME": "/home/op",
        "PATH": "/bin",
        "TMPDIR": "/folder/tmp",
        "ADB_MDNS": "0",
        "ADB_EMU": "0",
        "ADB_REJECT_KILL_SERVER": "1",
    }


def test_without_usb_nothing_is_written_in_the_operators_home() -> None:
    environment = server_environment(OPERATOR, FOLDER, False, None)

    assert environment["ADB_USB"] == "0"
    assert environment["HOME"] == "/folder/home"


def test_a_shared_key_goes_before_the_operators() -> None:
    outer = {**OPERATOR, "ADB_VENDOR_KEYS": "/operators"}

    assert server_environment(outer, FOLDER, True, None)["ADB_VENDOR_KEYS"] == "/operators"
    assert server_environment(outer, FOLDER, True, "/labs")["ADB_VENDOR_KEYS"] == "/labs"
