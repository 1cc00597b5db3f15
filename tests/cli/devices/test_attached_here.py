"""A device of another machine is refused with the whole command that its host takes."""

import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm.cli.devices.adb import check_attached_here
from farm.core.base.ids import DeviceId
from farm.core.errors import HostError
from farm.wire.documents.devices import AdbAccess


def access(boot_id: str) -> AdbAccess:
    return AdbAccess(
        device_id=DeviceId("phone-1"),
        serial="A1B2",
        host="bench-2",
        adb_address="127.0.0.1:5038",
        boot_id=boot_id,
        reserved_until=datetime(2026, 1, 2, tzinfo=UTC),
    )


def test_a_device_of_this_machine_is_taken() -> None:
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    check_attached_here(access(here), "Ann's phone", ["adb", "shell"])


@pytest.mark.parametrize("options", [[], ["-t"]])
def test_a_device_of_another_machine_is_refused_with_the_command_for_its_host(options: list[str]) -> None:
    command = ["farm", "live", "tvm", "Ann's phone"]
    with pytest.raises(HostError) as refused:
        check_attached_here(access("other"), "Ann's phone", command, options=options)
    assert refused.value.message == "Ann's phone is attached to bench-2, not to this machine"
    _, _, remote = refused.value.hint.partition(": ")
    *ssh, there = shlex.split(remote)
    assert ssh == ["ssh", *options, "bench-2"]
    assert shlex.split(there) == command
