"""The walk-throughs for engineers and operators are typed as they stand, and print what they say."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.virtual.pool import start_devices, stop_devices
from agents.virtual.sandbox import host_soc
from tests.e2e.pages.console_page import Step, console, steps
from tests.support.faults.port_faults import held_port

ROOT = Path(__file__).resolve().parents[3]
#: What the pages call this machine; a phone's name has it in the middle.
MACHINE = "desk"
ENVIRONMENT = {"FARM_PORT": "0", "FARM_USER": "ann"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def said_here(folder: Path) -> dict[str, str]:
    """What the pages say of the machine they were written on, and what is so here."""
    _, soc = host_soc(Path("/proc/cpuinfo").read_text())
    return {"AMD EPYC": soc, "/home/ann/desk": str(folder), "/home/ann/benchfarm": str(ROOT)}


@pytest.fixture
def desk(short_path: Path) -> Path:
    """The folder of a reader who has a checkout's examples."""
    folder = short_path / "desk"
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def name_phones(folder: Path) -> Path:
    """Have virtual phones of a folder bear the names of the pages."""
    folder.mkdir(parents=True)
    (folder / "suffix").write_text(MACHINE)
    return folder


@contextmanager
def phones_on_tcp(folder: Path) -> Iterator[dict[str, str]]:
    """Two phones, by the addresses that the page has for them."""
    phones = start_devices(2, name_phones(folder))
    try:
        yield {f"10.0.0.2{number}:5555": phone.address for number, phone in enumerate(phones, 1)}
    finally:
        stop_devices(folder)


# Some 50 runs and two exports of a model: they take ten times as long on a busy machine.
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_engineers_page_is_as_it_says(desk: Path) -> None:
    name_phones(desk / "farm-data" / "virtual")
    environment = {**ENVIRONMENT, "FARM_AGENT_HOST": MACHINE}
    with console(desk, environment=environment, here_by_said=said_here(desk)) as opened:
        for step in steps(page("engineer.md")):
            opened.play(step)


@pytest.mark.long
def test_a_laptop_logs_in_and_measures_as_its_page_says(desk: Path, short_path: Path) -> None:
    name_phones(short_path / "lab" / "virtual")
    lab = f"env FARM_AGENT_HOST={MACHINE} FARM_DATA_DIR={short_path / 'lab'}"
    with held_port() as port, console(desk, environment=ENVIRONMENT) as server:
        create = (
            f"{lab} farm token create --role {{}} --name {{}} --out {{}} --data {short_path / 'lab'} 2>&1"
        )
        server.play(Step(command=create.format("admin", "bo", "bo.token"), expected="..."))
        server.play(Step(command=create.format("submitter", "ann", "ann.token"), expected="..."))
        up = f"{lab} FARM_REQUIRE_TOKENS=1 FARM_UNCONFINED_VIRTUAL=1 FARM_PORT={port} farm up --virtual 1 &"
        server.play(Step(command=up, expected="Starting ...\nThe farm listens at ...\n..."))
        here = {**said_here(desk), "https://farm.lab": f"http://127.0.0.1:{port}"}
        environment = {**ENVIRONMENT, "XDG_CONFIG_HOME": str(desk / ".config")}
        with console(desk, environment=environment, here_by_said=here) as opened:
            for step in steps(page("laptop.md")):
                opened.play(step)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_operators_page_is_as_it_says(desk: Path, short_path: Path) -> None:
    here = {"/home/ann/phones": str(short_path / "phones"), **said_here(desk)}
    with held_port() as port, phones_on_tcp(short_path / "phones") as addresses:
        here |= {"127.0.0.1:8471": f"127.0.0.1:{port}", **addresses}
        with console(desk, environment=ENVIRONMENT, here_by_said=here) as opened:
            for step in steps(page("operator.md")):
                opened.play(step)


@pytest.mark.parametrize("name", ["engineer.md", "laptop.md", "operator.md"])
def test_every_file_that_a_walk_through_names_is_there(name: str) -> None:
    linked = re.findall(r"\]\(([\w./-]+)\)", page(name))
    named = re.findall(r"\bexamples/[\w.-]+", page(name))
    assert linked
    assert [path for path in linked if not (ROOT / "docs" / path).exists()] == []
    assert [path for path in named if not (ROOT / path).exists()] == []
