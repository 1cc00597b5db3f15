"""The example for GitHub Actions: its steps, run as a runner does, write a check at a stand-in of the API."""

import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from farm.core.errors import Blame
from farm.core.results.statistics.gate import GateOutcome

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / "examples" / "github-gate.yaml"
SCRIPT = ROOT / "examples" / "github_check.py"
SUMMARY = "### ❌ Slower\n"


@contextmanager
def github(status: int = 201) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a stand-in of the API, and the requests that it got."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({"path": self.path, "token": self.headers["Authorization"], "body": body})
            answer = b'{"message": "Resource not accessible by integration"}' if status >= 400 else b"{}"
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def step(name: str) -> str:
    """The command of a step of the workflow."""
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    (command,) = [step["run"] for step in job["steps"] if step.get("name") == name]
    return str(command)


def run_steps(folder: Path, api: str, *, code: int, summary: str | None) -> subprocess.CompletedProcess[str]:
    """Run both steps in a folder, with a `farm` that ends with a code."""
    (folder / "bin").mkdir()
    farm = folder / "bin" / "farm"
    writes = "" if summary is None else f"printf '%s' '{summary}' > gate.md\n"
    farm.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > words\ncat "$FARM_TOKEN_FILE" > seen\n{writes}exit {code}\n'
    )
    farm.chmod(0o755)
    script = folder / "base" / ".github" / "workflows" / "github_check.py"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT.read_text())
    environment = {
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FARM_TOKEN_FILE": "farm-token",
        "TOKEN": "secret",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_API_URL": api,
        "GITHUB_REPOSITORY": "someone/net",
        "GITHUB_TOKEN": "of-the-run",
        "HEAD_SHA": "c0ffee",
    }

    def bash(command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=folder,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    asked = bash(step("Ask the farm"))
    assert asked.returncode == 0, asked.stderr
    output = (folder / "output").read_text().strip().removeprefix("code=")
    return bash(step("Write the check"), CODE=output)


@pytest.mark.parametrize(
    ("code", "conclusion"),
    [
        (GateOutcome.PASSED.exit_code, "success"),
        (GateOutcome.SLOWER.exit_code, "failure"),
        (GateOutcome.UNDECIDED.exit_code, "action_required"),
        (GateOutcome.NOT_MEASURED.exit_code, "action_required"),
        (Blame.FARM.exit_code, "action_required"),
        (Blame.VARIANT.exit_code, "failure"),
        (1, "failure"),
    ],
)
def test_the_check_is_on_the_head_commit_and_passes_for_nothing_but_a_pass(
    tmp_path: Path, code: int, conclusion: str
) -> None:
    has_summary = code != Blame.FARM.exit_code
    with github() as (api, requests):
        done = run_steps(tmp_path, api, code=code, summary=SUMMARY if has_summary else None)
    assert done.returncode == 0, done.stderr
    (request,) = requests
    assert request["path"] == "/repos/someone/net/check-runs"
    assert request["token"] == "Bearer of-the-run"
    body = request["body"]
    assert (body["head_sha"], body["status"], body["conclusion"]) == ("c0ffee", "completed", conclusion)
    assert body["output"]["title"]
    assert body["output"]["summary"] == (SUMMARY if has_summary else "The log of the job has the reason.")
    # The farm was asked with the token, which is gone afterwards.
    assert (tmp_path / "seen").read_text() == "secret\n"
    assert not (tmp_path / "farm-token").exists()
    assert "not-slower=3%" in (tmp_path / "words").read_text().splitlines()


def test_a_model_that_the_pull_request_leaves_as_it_is_passes_without_the_farm(tmp_path: Path) -> None:
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "model.ptl").write_bytes(b"the same")
    with github() as (api, requests):
        done = run_steps(tmp_path, api, code=Blame.USER.exit_code, summary=None)
    assert done.returncode == 0, done.stderr
    (request,) = requests
    assert request["body"]["conclusion"] == "success"
    assert "same file" in request["body"]["output"]["summary"]
    assert not (tmp_path / "words").exists()


def test_an_api_that_is_not_there_fails_the_step_with_its_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with github() as (api, _):
        pass
    for name, value in (("API_URL", api), ("REPOSITORY", "someone/net"), ("TOKEN", "of-the-run")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    monkeypatch.setenv("HEAD_SHA", "c0ffee")
    write_check = runpy.run_path(str(SCRIPT))["main"]
    with pytest.raises(SystemExit, match=f"GitHub cannot be reached at {api}: "):
        write_check(0, tmp_path / "gate.md")


@pytest.mark.parametrize(("status", "answer"), [(403, "Resource not accessible by integration"), (302, "{}")])
def test_a_check_that_is_not_written_fails_the_step_with_what_is_missing(
    tmp_path: Path, status: int, answer: str
) -> None:
    with github(status) as (api, _):
        done = run_steps(tmp_path, api, code=0, summary=SUMMARY)
    assert done.returncode == 1
    assert f"refuses the check with {status}: {answer}" in done.stderr.replace('{"message": "', "")
    assert "permissions: {checks: write}" in done.stderr


def test_every_exit_code_of_a_gate_has_a_conclusion_and_may_write_checks() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"]["checks"] == "write"
    script = SCRIPT.read_text()
    assert all(f"    {party.exit_code}: (" in script for party in (*Blame, *GateOutcome))
    page = (ROOT / "docs" / "ci.md").read_text()
    assert all(f"| {outcome.exit_code} |" in page for outcome in GateOutcome)
