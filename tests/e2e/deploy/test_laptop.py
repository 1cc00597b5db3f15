"""A laptop: an environment with the base dependencies alone, and a farm with a virtual phone elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.farm.processes import CHECKOUT, FarmProcess, eventually, running_farm_with_agent

# A fresh environment is filled from the package index: half a minute of two cores, and the network's time.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "1")
#: What farm, agent and statistics bring.
_ELSEWHERE = {"adbutils", "alembic", "fastapi", "numpy", "scipy", "sqlalchemy", "torch", "uvicorn"}


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the project as docs/laptop.md says; return the folder of the environment's programs."""
    folder = tmp_path_factory.mktemp("laptop")
    source = folder / "benchfarm"
    # Of a copy: an installation writes beside the sources.
    for name in ("agents", "benchfarm", "farm", "harnesses", "migrations"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # Most of what it installs is never imported here.
    environment["PIP_COMPILE"] = "0"
    install = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", source]
    subprocess.run(
        install, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment}, check=True, timeout=900
    )
    return programs


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    process = FarmProcess(tmp_path_factory.mktemp("lab") / "farm", command=_UP)
    with running_farm_with_agent(process):
        with process.client() as client:
            eventually(lambda: [device.health for device in client.devices()] == ["good"], "it is checked")
        yield process


def typed(laptop: Path, desk: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the laptop, which knows nothing of this checkout."""
    return subprocess.run(
        [laptop / words[0], *words[1:]],
        cwd=desk,
        env={"PATH": "/usr/bin:/bin", "HOME": str(desk), "FARM_USER": "ann", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_base_installation_has_nothing_of_a_farm(laptop: Path, tmp_path: Path) -> None:
    listed = typed(laptop, tmp_path, "python", "-m", "pip", "list", "--format", "freeze")
    names = {line.partition("==")[0].lower() for line in listed.stdout.splitlines()}
    assert "benchfarm" in {name.partition(" ")[0] for name in names}
    assert not names & _ELSEWHERE


def test_a_laptop_measures_on_a_farm_elsewhere(laptop: Path, farm: FarmProcess, tmp_path: Path) -> None:
    for words in (("farm", "--help"), ("farm", "run", "--help"), ("python", "-c", "import benchfarm")):
        done = typed(laptop, tmp_path, *words)
        assert done.returncode == 0, done.stderr
    shutil.copy(CHECKOUT / "examples" / "hash_bench", tmp_path / "hash_bench")
    measured = typed(
        laptop,
        tmp_path,
        "farm",
        "run",
        "--quick",
        "--watch",
        "--",
        "./hash_bench",
        "--passes=3",
        FARM_URL=farm.url,
    )
    assert measured.returncode == 0, measured.stderr
    # Of what quality depends on what else the machine does.
    assert re.search(r"^virtual-\S+ +[\d.]+ m?s +1 [a-z]+ *$", measured.stdout, re.MULTILINE), measured.stdout
    asked = typed(
        laptop,
        tmp_path,
        "python",
        "-c",
        "from benchfarm import Farm; print(Farm().matrix(1).results().to_dicts()[0]['n'])",
        FARM_URL=farm.url,
    )
    assert asked.stdout == "1\n", asked.stderr
    refused = typed(laptop, tmp_path, "farm", "up")
    assert refused.returncode == 2
    assert refused.stderr.endswith("hint: pip install 'benchfarm[farm]' installs it\n")


def test_a_laptop_logs_in(laptop: Path, farm: FarmProcess, tmp_path: Path) -> None:
    token = tmp_path / "ann.token"
    create = ("token", "create", "--role", "submitter", "--name", "ann", "--out", str(token))
    made = subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", *create],
        cwd=CHECKOUT,
        env={**os.environ, "FARM_URL": farm.url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    done = typed(laptop, tmp_path, "farm", "login", farm.url, "--token-file", str(token))
    assert done.returncode == 0, done.stderr
    assert "as ann (submitter)" in done.stderr + done.stdout
    named = typed(laptop, tmp_path, "python", "-c", "from benchfarm import Farm; print(Farm().whoami().role)")
    assert named.stdout == "submitter\n", named.stderr
