"""The compose file: what it names exists. What it starts is started in tests/e2e/deploy, without Docker."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from farm.cli.shell.main import app
from farm.config import DEFAULT_PORT, FarmConfig
from farm.database.connect import OLDEST_MAJOR

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
PAGE = (ROOT / "docs" / "operations.md").read_text()
#: What a variable stands for when nobody sets it.
DEFAULT = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")
#: Set for the compose file itself.
OF_COMPOSE = {"FARM_PUBLISH"}
SERVICES = sorted(COMPOSE["services"])


def settings(service: str) -> dict[str, str]:
    found: dict[str, Any] = COMPOSE["services"][service]["environment"]
    return {name: DEFAULT.sub(r"\2", str(value)) for name, value in found.items()}


def test_the_file_is_as_the_specification_says_and_a_key_that_it_does_not_have_is_found(
    tmp_path: Path,
) -> None:
    """By its schema (github.com/compose-spec); one process for both files, since it takes long to start."""
    if find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema, which has the schema, is not installed: `make test` does it")
    right, wrong = FOLDER / "compose.yaml", tmp_path / "wrong.yaml"
    wrong.write_text(right.read_text().replace("stop_grace_period:", "stop_grace_time:"))
    command = [sys.executable, "-m", "check_jsonschema", "--output-format", "json"]
    command += ["--builtin-schema", "vendor.compose-spec", str(right), str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = json.loads(done.stdout)["errors"]
    assert {Path(error["filename"]).name for error in errors} == {wrong.name}, done.stdout
    assert "stop_grace_time" in done.stdout


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_and_secrets_of_a_service_are_declared(name: str) -> None:
    service = COMPOSE["services"][name]
    assert {volume.split(":")[0] for volume in service["volumes"]} <= set(COMPOSE["volumes"])
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    mounted = {f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert {value for value in settings(name).values() if value.startswith("/run/secrets/")} == mounted


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gains_no_privilege(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "pid", "network_mode", "devices"} & set(service)


def test_the_farm_is_no_root_and_writes_nothing_but_what_is_mounted() -> None:
    farm = COMPOSE["services"]["farm"]
    (uid,) = re.findall(r"useradd .*--uid (\d+)", DOCKERFILE)
    assert farm["user"] == f"{uid}:{uid}"
    assert farm["read_only"] is True
    assert "cap_add" not in farm
    own = dict(re.findall(r"^ENV (FARM_\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))["FARM_DATA_DIR"]
    mounted = {mount.split(":")[0] for mount in farm["tmpfs"]}
    assert mounted == {"/tmp", own}
    assert all(f"uid={uid}" in mount for mount in farm["tmpfs"] if mount.startswith(own))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_says_when_it_is_well_and_comes_back(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["restart"] == "unless-stopped"


def test_every_secret_is_a_file_that_the_page_makes_and_git_ignores() -> None:
    for secret in COMPOSE["secrets"].values():
        assert re.search(rf"> {secret['file'].removeprefix('./')}$", PAGE, re.MULTILINE)
    assert "deploy/compose/secrets/" in (ROOT / ".gitignore").read_text().split()


def test_the_farm_takes_every_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://benchfarm:x@database/benchfarm\n")
    given = {**settings("farm"), **dict(re.findall(r"^ENV (FARM_\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))}
    given["FARM_DATABASE_URL_FILE"] = str(tmp_path / "url")
    assert {name.removeprefix("FARM_").lower() for name in given} <= set(FarmConfig.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    config = FarmConfig()
    assert config.needs_tokens
    assert config.port == DEFAULT_PORT
    assert not config.blobs_dir.is_relative_to(config.data_dir), "processes share files, not their folders"


def test_the_example_of_an_environment_has_the_same_names_and_defaults() -> None:
    text = (FOLDER / "compose.yaml").read_text()
    example = dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / "env.example").read_text(), re.MULTILINE))
    assert example == dict(DEFAULT.findall(text))
    assert {name.removeprefix("FARM_").lower() for name in set(example) - OF_COMPOSE} <= set(
        FarmConfig.model_fields
    )


def test_the_command_is_one_of_the_cli_with_options_it_has() -> None:
    command, *options = COMPOSE["services"]["farm"]["command"]
    known = get_command(app).commands[command]  # type: ignore[attr-defined]
    offered = {name for param in known.params for name in (*param.opts, *param.secondary_opts)}
    assert set(options) <= offered
    assert f'CMD ["{command}", "--no-agent"]' in DOCKERFILE


def test_ports_and_addresses_fit_together() -> None:
    farm = COMPOSE["services"]["farm"]
    (port,) = farm["ports"]
    assert DEFAULT.sub(r"\2", port) == f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}", "loopback by default"
    assert f":{DEFAULT_PORT}/api/v1/health" in farm["healthcheck"]["test"][-1]
    assert f"EXPOSE {DEFAULT_PORT}" in DOCKERFILE
    compile(farm["healthcheck"]["test"][-1], "healthcheck", "exec")


def test_the_image_has_what_the_project_needs_and_nothing_else() -> None:
    copied = set(re.findall(r"^COPY (?:.* )?\./?(\w+)?$", DOCKERFILE, re.MULTILINE)) - {""}
    assert copied == {"agents", "farm", "harnesses", "migrations"}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert allowed == copied | {"LICENSE", "pyproject.toml", "README.md"}
    assert all((ROOT / each).exists() for each in allowed)
    assert re.search(r"^USER benchfarm$", DOCKERFILE, re.MULTILINE)


def test_the_database_is_one_that_was_tried() -> None:
    assert COMPOSE["services"]["database"]["image"] == "postgres:18"
    assert OLDEST_MAJOR <= 18
