import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.device.facts import FACTS_COMMAND, device_facts, find_unsupported_reason
from farm.phone.adb.shell_output import output_by_section

PHONE = {
    "getprop": "[ro.build.version.sdk]: [34]\n[ro.serialno]: [A1]\n[ro.product.model]: [One]",
    "machine": "aarch64",
    "kernel": "6.1.0-android14",
    "system": "Linux",
    "cpuinfo": "processor\t: 0\nprocessor\t: 1",
    "nproc": "2",
    "meminfo": "MemTotal:  2048 kB",
    "work_root": "/data/local/tmp",
    "missing": "checked",
    "setsid": "77\n77",
}


@pytest.fixture
def plain_linux(tmp_path: Path) -> dict[str, str]:
    """What a machine answers that has none of Android's programs."""
    for name in ("uname", "cat", "nproc", "sha256sum", "setsid", "flock", "timeout", "grep", "env", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/false")
    answer = subprocess.run(
        ["/bin/sh", "-c", FACTS_COMMAND],
        env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr == ""
    return output_by_section(answer.stdout)


def test_a_phone_with_everything_is_fit() -> None:
    assert find_unsupported_reason(PHONE) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"getprop": "[ro.build.version.sdk]: [25]"}, "API level 25; 26"),
        ({"missing": "sha256sum\nflock\nchecked"}, "has no sha256sum, flock"),
        ({"work_root": ""}, "no folder"),
        ({"setsid": "77\n78"}, "setsid that forks"),
    ],
)
def test_a_phone_that_can_run_nothing_says_why(said: dict[str, str], reason: str) -> None:
    assert reason in (find_unsupported_reason({**PHONE, **said}) or "")


@pytest.mark.parametrize("lost", PHONE)
def test_a_lost_section_is_a_reason_or_nothing(lost: str) -> None:
    answers = {name: text for name, text in PHONE.items() if name != lost}
    assert (find_unsupported_reason(answers) is None) is (lost not in ("work_root", "setsid"))


def test_a_phone_is_known_by_its_own_number() -> None:
    facts = device_facts(PHONE, "10.0.0.7:5555")
    assert (facts.serialno, facts.device_model, facts.abi) == ("A1", "One", "arm64-v8a")
    assert (facts.cores, facts.memory_bytes, facts.work_root) == (2, 2048 * 1024, "/data/local/tmp")


def test_a_device_side_that_is_not_android_is_fit_and_says_little(plain_linux: dict[str, str]) -> None:
    assert find_unsupported_reason(plain_linux) is None
    facts = device_facts(plain_linux, "10.0.0.7:5555")
    assert facts.serialno == "10.0.0.7:5555"
    assert facts.device_model == f"Linux {os.uname().machine}"
    assert (facts.manufacturer, facts.soc, facts.android, facts.api_level) == (None, None, None, None)
    assert facts.work_root.startswith("/")
    assert facts.abi is not None
    assert not facts.virtual


def test_the_versions_of_kernel_and_thermal_hal_are_facts() -> None:
    hal = "\tThermalHAL AIDL 2  connected: yes"
    answers = {**PHONE, "kernel_version": "#1 SMP PREEMPT Mon Jan 19\n", "thermal_hal": hal}
    facts = device_facts(answers, "10.0.0.7:5555")
    assert (facts.kernel_version, facts.thermal_hal) == ("#1 SMP PREEMPT Mon Jan 19", "AIDL 2")
    assert facts.sources["kernel_version"] == "uname -v"
    assert facts.sources["thermal_hal"] == "dumpsys thermalservice"
