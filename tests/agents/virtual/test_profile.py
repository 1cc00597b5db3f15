"""What a virtual phone says of itself."""

from pathlib import Path

import pytest

from agents.virtual.faults import Faults
from agents.virtual.sandbox import (
    dumpsys_battery,
    dumpsys_thermalservice,
    getprop_text,
    host_soc,
    properties,
)
from agents.virtual.shell_service import ShellRequest, shell_request

X86 = "vendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.00GHz\nflags\t\t:\n\nprocessor\t: 1\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


def test_the_soc_is_the_hosts_cpu() -> None:
    assert host_soc(X86) == ("Intel", "Some CPU @ 2.00GHz")
    assert host_soc(ARM) == ("unknown", "CPU 0x41:0xd0c")
    assert host_soc("") == ("unknown", "CPU ?:?")


def test_it_says_that_it_is_virtual_and_pretends_to_be_no_phone_model() -> None:
    values = properties("name", Path("/work"), X86, "domain")

    assert values["ro.serialno"] == "name"
    assert values["ro.benchfarm.virtual"] == "1"
    assert values["ro.benchfarm.work_root"] == "/work"
    assert values["ro.product.model"].startswith("virtual phone")
    assert "[ro.build.version.release]: [virtual]\n" in getprop_text(values)


def test_a_phone_without_faults_makes_up_neither_battery_nor_temperatures() -> None:
    assert "present: false" in dumpsys_battery(Faults())
    assert "temperature" not in dumpsys_battery(Faults())
    assert "Temperature{" not in dumpsys_thermalservice(Faults())


def test_faults_show_in_tenths_of_degrees_and_by_sensor() -> None:
    assert "temperature: 415\n" in dumpsys_battery(Faults(battery_c=41.5))
    assert "Temperature{mValue=50.0, mType=3, mName=skin, mStatus=2}" in dumpsys_thermalservice(
        Faults(thermal_status=2, skin_c=50.0)
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shell,v2,TERM=xterm,raw:ls -l", ShellRequest(command="ls -l", framed=True, term="xterm")),
        ("shell,v2:a:b,c", ShellRequest(command="a:b,c", framed=True)),
        ("shell:", ShellRequest(command="", framed=False)),
        ("exec:cat x", ShellRequest(command="cat x", framed=False)),
        ("sync:", None),
        ("shellac:x", None),
        ("tcp:80", None),
        ("", None),
    ],
)
def test_a_service_name_is_taken_apart_once(name: str, expected: ShellRequest | None) -> None:
    assert shell_request(name) == expected
