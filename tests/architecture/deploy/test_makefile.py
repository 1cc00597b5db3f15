"""What `make` says on a machine that lacks something."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    """A Python of our choosing: its one answer is given by FAKE_PYTHON_FAILS_ON."""
    path = tmp_path / "python3"
    path.write_text('#!/bin/sh\ncase "$2" in *"$FAKE_PYTHON_FAILS_ON"*) exit 1;; esac\nexit 0\n')
    path.chmod(0o755)
    return path


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("fails_on", "hint"),
    [("version_info", "hint: make PYTHON=python3.11 install"), ("ensurepip", "apt install python3-venv")],
)
def test_a_missing_prerequisite_gives_one_line_with_a_hint(
    tmp_path: Path, fake_python: Path, fails_on: str, hint: str
) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "install", f"PYTHON={fake_python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "FAKE_PYTHON_FAILS_ON": fails_on},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(ours) == 1
    assert hint in ours[0]


def printed(*words: str) -> str:
    """What `make` prints, or would run."""
    return subprocess.run(
        ["make", "--no-print-directory", "--always-make", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_each_test_is_in_one_of_both_tiers_and_ci_runs_both() -> None:
    quick, long = (printed("--dry-run", target) for target in ("test", "test-long"))
    assert '-m "not long"' in quick
    assert '-m "long or hypothesis" --hypothesis-profile long' in long
    assert "ruff check" in quick
    ci = (ROOT / ".ci" / "run").read_text()
    assert "\nmake test || make test-failed\n" in ci
    # What failed is no test to skip because it is late.
    assert ci.endswith("\nmake test-long || env --unset=BENCHFARM_LONG_TESTS_UNTIL make test-failed\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_folders_of_the_short_check_are_there() -> None:
    (command,) = (line for line in printed("--dry-run", "check").splitlines() if "pytest" in line)
    folders = [word for word in command.split() if word.startswith("tests/")]
    assert folders
    assert all((ROOT / folder).is_dir() for folder in folders)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_help_names_every_target_that_people_type() -> None:
    phony = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    told = {line.split()[1] for line in printed("help").splitlines()}
    assert told == set(phony) - {"help"}
