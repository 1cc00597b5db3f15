"""A device of another machine is refused with the whole command that its host takes."""

import shlex
from pathlib import Path

import pytest

from farm.cli.devices.adb import check_attached_here
from farm.core.base.ids import HostId
from farm.core.errors import HostError

HOST = HostId("bench-2")


def test_a_device_of_this_machine_is_taken() -> None:
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    check_attached_here(HOST, here, "Ann's phone", ["adb", "shell"])


@pytest.mark.parametrize("options", [[], ["-t"]])
def test_a_device_of_another_machine_is_refused_with_the_command_for_its_host(options: list[str]) -> None:
    command = ["farm", "live", "tvm", "Ann's phone"]
    with pytest.raises(HostError) as refused:
        check_attached_here(HOST, "other", "Ann's phone", command, options=options)
    assert refused.value.message == "Ann's phone is attached to bench-2, not to this machine"
    _, _, remote = refused.value.hint.partition(": ")
    *ssh, there = shlex.split(remote)
    assert ssh == ["ssh", *options, "bench-2"]
    assert shlex.split(there) == command


def test_a_device_whose_agent_is_not_connected_is_refused() -> None:
    with pytest.raises(HostError, match="the agent of host bench-2 is not connected"):
        check_attached_here(HOST, None, "Ann's phone", ["adb", "shell"])
