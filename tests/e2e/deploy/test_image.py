"""The image and the compose file without Docker: what they copy, install, start, call healthy and stop.

Not tried: the base image, its user, networks and volumes.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.database.postgres import PostgresServer
from tests.support.farm.processes import CHECKOUT, eventually
from tests.support.faults.port_faults import held_port

# A fresh environment is filled from the package index: half a minute of two cores, and the network's time.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

COMPOSE = CHECKOUT / "deploy" / "compose"
_DEFAULT = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")
_PORT = "8470"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image below a folder that is taken for the root."""

    root: Path
    variables: dict[str, str]
    entry: list[str]

    def here(self, text: str) -> str:
        """Return a text of the compose file with paths below the root, and defaults filled in."""
        text = _DEFAULT.sub(r"\1", text)
        return re.sub(r"(?<![\w.])/(var/lib|run/secrets)/", rf"{self.root}/\1/", text)


def instructions() -> list[tuple[str, str]]:
    text = (COMPOSE / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [
        (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line and line[0] != "#"
    ]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Follow the Dockerfile; what needs root, the user's creation, is left out."""
    root = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", root / "python"], check=True)
    variables = {"PATH": f"{root / 'python/bin'}:/usr/bin:/bin", "HOME": str(root / "var/lib/benchfarm")}
    # pip's own settings, so that a mirror is used here as it is elsewhere.
    variables |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    # Most of what it installs is never imported here.
    variables["PIP_COMPILE"] = "0"
    folder, entry = root, ["farm"]
    for name, rest in instructions():
        match name:
            case "WORKDIR":
                folder = root / rest.lstrip("/")
                folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                *sources, target = rest.split()
                for source in sources:
                    _copy(CHECKOUT / source, folder / target / ("" if target == "./" else "."))
            case "RUN" if rest.startswith("pip "):
                subprocess.run(shlex.split(rest), cwd=folder, env=variables, check=True, timeout=900)
            case "ENV":
                key, _, value = rest.partition("=")
                variables[key] = value.replace("/var/lib", f"{root}/var/lib")
            case "ENTRYPOINT":
                entry = yaml.safe_load(rest)
    return Image(root=root, variables=variables, entry=entry)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        # As .dockerignore says.
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


@pytest.fixture
def service(image: Image, postgres: PostgresServer) -> Iterator[dict[str, Any]]:
    """The farm's service of the compose file, with its secrets and volumes, on a PostgreSQL."""
    found: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]["farm"]
    for folder in ("run/secrets", "var/lib/benchfarm/blobs"):
        (image.root / folder).mkdir(parents=True, exist_ok=True)
    with postgres.database() as name, held_port() as port:
        (image.root / "run/secrets/database_url").write_text(f"{postgres.url(name)}\n")
        given = {key: image.here(str(value)) for key, value in found["environment"].items()}
        found["environment"] = {**image.variables, **given, "FARM_PORT": str(port)}
        found["healthcheck"]["test"] = [
            word.replace(_PORT, str(port)) for word in found["healthcheck"]["test"][1:]
        ]
        yield found


def program_of(image: Image, service: dict[str, Any]) -> str:
    """Return the program that the image starts."""
    program = shutil.which(image.entry[0], path=service["environment"]["PATH"])
    assert program is not None
    assert Path(program).is_relative_to(image.root), "of the image, not of this checkout's environment"
    return program


def run(image: Image, service: dict[str, Any], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the image, as `docker compose run farm` does."""
    return subprocess.run(
        [program_of(image, service), *words],
        cwd=image.root / "var/lib/benchfarm",
        env=service["environment"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def is_healthy(service: dict[str, Any]) -> bool:
    """Run the health check as Docker would."""
    check = service["healthcheck"]
    program = shutil.which(check["test"][0], path=service["environment"]["PATH"])
    assert program is not None
    within_s, variables = float(check["timeout"].rstrip("s")), service["environment"]
    command = [program, *check["test"][1:]]
    done = subprocess.run(command, env=variables, capture_output=True, timeout=within_s, check=False)
    return done.returncode == 0


def test_the_image_starts_what_compose_says_gets_healthy_and_stops_in_time(
    image: Image, service: dict[str, Any]
) -> None:
    refused = run(image, service, *service["command"])
    assert refused.returncode == 2, refused.stderr
    assert "token" in refused.stderr, "the page: it does not start before an admin has one"
    created = run(image, service, "token", "create", "--role", "admin", "--name", "ann")
    assert created.returncode == 0, created.stderr

    log = image.root / "farm.log"
    with log.open("wb") as sink:
        farm = subprocess.Popen(
            [program_of(image, service), *service["command"]],
            cwd=image.root / "var/lib/benchfarm",
            env=service["environment"],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        eventually(lambda: is_healthy(service), f"it is healthy; {log}", within_s=120, every_s=0.5)
        farm.terminate()
        assert farm.wait(float(service["stop_grace_period"].rstrip("s"))) == 0, log.read_text()
        assert not is_healthy(service)
    finally:
        farm.kill()
        farm.wait()
