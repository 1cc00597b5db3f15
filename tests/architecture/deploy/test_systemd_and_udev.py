"""Units, rules and the page on using them: what they name exists, and systemd understands them."""

import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agents.host.config import AgentConfig
from farm.cli.shell.main import app
from farm.config import FarmConfig

ROOT = Path(__file__).resolve().parents[3]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
RULES = ROOT / "deploy" / "udev" / "51-benchfarm.rules"
PAGE = (ROOT / "docs" / "install-hosts.md").read_text()
INSTALLED = "/opt/benchfarm/"
#: Lines of the page's blocks: what an operator types.
TYPED = [
    line
    for block in re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
KEY = re.compile(r'([A-Z]+)(?:\{([^}]+)\})?(==|!=|\+=|=)"([^"]*)"')


def settings(unit: Path) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in unit.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def parsed_as_farm_command(words: list[str]) -> None:
    """Raises when there is no such command, or it does not take what it is given."""
    command: Any = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context("farm", words)


def rules() -> list[list[tuple[str, str, str, str]]]:
    lines = RULES.read_text().splitlines()
    return [KEY.findall(line) for line in lines if line and not line.startswith("#")]


def test_there_is_a_unit_for_either_machine() -> None:
    assert [unit.name for unit in UNITS] == ["benchfarm-agent.service", "benchfarm.service"]


def analyzed(unit: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What `systemd-analyze` says of a unit."""
    if (analyze := shutil.which("systemd-analyze")) is None:
        # .ci/run installs it: there, nothing is skipped.
        assert "CI" not in os.environ, "no systemd here"
        pytest.skip("no systemd here")
    copy = folder / unit.name
    # The program is where this is tried out, not where it will be installed.
    copy.write_text(unit.read_text().replace(f"{INSTALLED}.venv/bin/farm", "/bin/true"))
    return subprocess.run([analyze, *words, str(copy)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    done = analyzed(unit, tmp_path, "verify")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_exposed_no_more_than_it_has_to_be(unit: Path, tmp_path: Path) -> None:
    # In tenths, of at most 10: what is left are the network, and the devices of an agent.
    done = analyzed(unit, tmp_path, "security", "--offline=true", "--threshold=20")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_an_agent_reaches_phones_and_the_log_that_names_a_full_usb_controller() -> None:
    found = settings(UNITS[0])
    assert found["DevicePolicy"] == ["closed"]
    assert found["DeviceAllow"] == ["char-usb_device rw"]
    assert {"plugdev", "systemd-journal"} <= set(found["SupplementaryGroups"])
    # adb learns of new phones by netlink; its socket and keys are below the folder that the unit may write.
    assert {"AF_NETLINK", "AF_UNIX"} <= set(found["RestrictAddressFamilies"][0].split())
    assert not {"PrivateDevices", "ProtectKernelLogs", "PrivateUsers"} & set(found)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    (start,) = settings(unit)["ExecStart"]
    program, *words = shlex.split(start)
    assert program == f"{INSTALLED}.venv/bin/farm"
    parsed_as_farm_command(words)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_ends_its_own_process_first_and_what_is_left_after_it(unit: Path) -> None:
    assert settings(unit)["KillMode"] == ["mixed"]
    assert settings(unit)["Restart"] == ["always"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_writes_only_where_it_has_made_a_folder(unit: Path) -> None:
    found = settings(unit)
    assert found["ProtectSystem"] == ["strict"]
    folders = {f"/var/lib/{name}" for name in found["StateDirectory"][0].split()}
    used = {value.partition("=")[2] for value in found["Environment"]} | set(found["WorkingDirectory"])
    assert used <= folders


def test_an_agent_that_has_not_joined_is_not_started_again_and_again() -> None:
    assert settings(UNITS[0])["RestartPreventExitStatus"] == ["2"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_unit_says_to_read_is_there(unit: Path) -> None:
    for path in re.findall(rf"{INSTALLED}((?:docs|deploy)/[\w./-]+)", unit.read_text()):
        assert (ROOT / path).is_file()


def test_the_rules_stand_between_those_they_build_on_and_those_that_read_them() -> None:
    assert 50 < int(RULES.name[:2]) < 73


def test_every_rule_is_written_as_udev_reads_it() -> None:
    for line in RULES.read_text().splitlines():
        if line and not line.startswith("#"):
            assert KEY.sub("", line).replace(",", "").strip() == ""


def test_every_jump_has_its_label() -> None:
    keys = [key for rule in rules() for key in rule]
    assert {value for name, _, _, value in keys if name == "GOTO"} == {
        value for name, _, _, value in keys if name == "LABEL"
    }


@pytest.mark.parametrize(
    ("interfaces", "is_a_phone"),
    [
        (":060101:ff4201:", True),
        (":ff4201:", True),
        (":ff4203:", True),
        (":060101:", False),
        (":ff4202:", False),
    ],
)
def test_a_phone_is_told_by_its_interface(interfaces: str, is_a_phone: bool) -> None:
    opened = [
        rule
        for rule in rules()
        if ("MODE", "", "=", "0660") in rule
        and fnmatchcase(
            interfaces, {name: value for _, name, op, value in rule if op == "=="}["ID_USB_INTERFACES"]
        )
    ]
    assert bool(opened) is is_a_phone
    assert all({("GROUP", "", "=", "plugdev"), ("TAG", "", "+=", "uaccess")} <= set(rule) for rule in opened)


@pytest.mark.parametrize("line", [line for line in TYPED if re.search("(^|[/ ])farm ", line)])
def test_every_farm_command_of_the_page_is_one(line: str) -> None:
    words = shlex.split(line.partition(" < ")[0])
    place = next(place for place, word in enumerate(words) if word.rpartition("/")[2] == "farm")
    parsed_as_farm_command(words[place + 1 :])


def test_every_file_of_the_page_is_there() -> None:
    named = {name for line in TYPED for name in re.findall(rf"{INSTALLED}(deploy/\S+)", line)}
    assert named
    assert all((ROOT / name).is_file() for name in named)


def test_every_setting_of_the_page_is_one() -> None:
    known = {f"FARM_AGENT_{name}".upper() for name in AgentConfig.model_fields}
    known |= {f"FARM_{name}".upper() for name in FarmConfig.model_fields}
    assert set(re.findall(r"FARM_[A-Z_]+", PAGE)) <= known
