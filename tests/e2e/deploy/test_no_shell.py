"""The farm where the machine has no shells, as in its image: it starts, answers and stops."""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.farm.processes import CHECKOUT, FarmProcess, running_farm

#: In a mount namespace of its own: hides what may be a shell, makes sure of it, and becomes the command.
_WITHOUT_SHELLS = """
import os, subprocess, sys
shells, command = sys.argv[1].split(","), sys.argv[2:]
for shell in filter(os.path.exists, shells):
    subprocess.run(["mount", "--bind", "/dev/null", os.path.realpath(shell)], check=True)
for shell in filter(os.path.exists, shells):
    try:
        subprocess.run([shell, "-c", "true"])
    except PermissionError:
        continue
    sys.exit(f"{shell} can be run")
os.execv(command[0], command)
"""
_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--no-agent")


def removed_shells() -> list[str]:
    """Return the files that the last step of the image removes."""
    text = (CHECKOUT / "deploy/compose/Dockerfile").read_text()
    (removal,) = re.findall(r'^RUN \["rm", "--force", (.*)\]$', text, re.MULTILINE)
    return re.findall(r'"([^"]+)"', removal)


def can_hide_files() -> bool:
    command = ["unshare", "--map-root-user", "--mount", "mount", "--bind", "/dev/null", "/bin/true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not can_hide_files(), reason="this machine gives users no mount namespace")
def test_a_farm_without_any_shell_starts_answers_and_stops(tmp_path: Path) -> None:
    shells = [*removed_shells(), "/bin/mksh", "/bin/ksh", "/bin/zsh", "/bin/busybox"]
    assert {"/bin/sh", "/bin/bash", "/bin/dash"} <= set(shells)
    hidden = (
        "unshare",
        "--map-root-user",
        "--mount",
        sys.executable,
        "-c",
        _WITHOUT_SHELLS,
        ",".join(shells),
    )
    farm = FarmProcess(tmp_path / "farm", command=(*hidden, *_UP))
    with running_farm(farm), httpx.Client(base_url=farm.url, trust_env=False, timeout=60) as http:
        assert http.get("/api/v1/health").json() == {"status": "ok"}
        assert http.get("/api/v1/storage").is_success
