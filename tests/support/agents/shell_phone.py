"""A phone as the supervisor script knows it: a shell, a PATH and a work folder; and its processes."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents.device.run.run_control import SUPERVISOR_SCRIPT
from agents.host.process import start_ticks, stat_fields
from farm.core.runs.evidence import ExitRecord
from farm.core.runs.trace import RunTrace
from farm.phone.adb.shell_output import exit_record
from farm.phone.condition.run_trace import run_trace
from tests.support.session.leftover_processes import MARK
from tests.support.session.tiers import quick_first

#: Phones have mksh and toybox; virtual ones, which most tests of agents run on, have dash.
SHELLS = ["mksh and toybox", "dash", "bash --posix", *(["busybox"] if shutil.which("busybox") else [])]


@dataclass
class Phone:
    """A work folder, a shell and a PATH: all that the script knows of a phone."""

    shell: list[str]
    env: dict[str, str]
    work: Path
    #: The pause between samples; shorter than in use, for more chances to be in the way.
    sampling: str = "0.05"
    fences: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True)
        self.script.write_bytes(SUPERVISOR_SCRIPT)

    @property
    def script(self) -> Path:
        return self.work / "supervisor.sh"

    def folder(self, fence: int) -> Path:
        return self.work / "runs" / str(fence)

    def prepare(self, fence: int, program: str) -> None:
        self.fences.add(fence)
        self.folder(fence).mkdir(parents=True, exist_ok=True)
        (self.folder(fence) / "run.sh").write_text(f"cd '{self.folder(fence)}' || exit 126\n{program}\n")

    def call(self, command: str, fence: int, argument: int = 0, part: str = "") -> int:
        # The measured run is sampled, its further commands are not.
        sampling = "" if part else self.sampling
        words = [command, str(self.work), str(fence), str(argument), part, sampling]
        words = [*self.shell, str(self.script), *words]
        return subprocess.run(words, env=self.env, cwd="/", timeout=60, check=False).returncode

    def start(self, fence: int, program: str, timeout_s: float = 60) -> int:
        self.prepare(fence, program)
        return self.call("start", fence, round(timeout_s * 10))

    def run(self, fence: int, program: str, timeout_s: float = 60) -> ExitRecord:
        assert self.start(fence, program, timeout_s) == 0
        assert self.call("wait", fence, 60) == 0
        return self.record(fence)

    def record(self, fence: int) -> ExitRecord:
        record = exit_record((self.folder(fence) / "exit").read_text())
        assert record is not None
        return record


#: For the fixture of each module.
ALL_SHELLS = quick_first(SHELLS)


@contextmanager
def shell_phone(name: str, tmp_path: Path) -> Iterator[Phone]:
    """A phone with that shell; what its runs leave is cleaned up, and there must be nothing left."""
    shell, env = _shell(name, tmp_path)
    # However this test run ends, what it started here ends with it.
    env |= {name: mark for name, mark in os.environ.items() if name == MARK}
    phone = Phone(shell=shell, env=env, work=tmp_path / "a work root" / "benchfarm")
    yield phone
    assert phone.call("clean", max(phone.fences, default=1)) == 0


def _shell(name: str, tmp_path: Path) -> tuple[list[str], dict[str, str]]:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    match name:
        case "mksh and toybox":
            shell, applets = _need("mksh", "/bin/mksh"), _need("toybox")
            for applet in subprocess.run(
                [applets], capture_output=True, text=True, check=True
            ).stdout.split():
                (bin_folder / applet).symlink_to(applets)
            path = str(bin_folder)
        case "busybox":
            applets = _need("busybox")
            subprocess.run([applets, "--install", "-s", str(bin_folder)], check=True)
            shell, path = applets, str(bin_folder)
        case _:
            shell, path = _need(name.split()[0]), f"{bin_folder}:{os.environ['PATH']}"
    (bin_folder / "sh").unlink(missing_ok=True)
    if name.startswith("bash"):
        # A wrapper, since bash must be told even where the script starts itself again.
        (bin_folder / "sh").write_text(f'#!/bin/sh\nexec {shell} --posix "$@"\n')
        (bin_folder / "sh").chmod(0o755)
    else:
        (bin_folder / "sh").symlink_to(shell)
    return [str(bin_folder / "sh")], {"PATH": path}


def _need(program: str, path: str | None = None) -> str:
    found = path if path and Path(path).exists() else shutil.which(program)
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"{program} is not installed, and CI must not skip this")
    pytest.skip(f"{program} is not installed (Debian: apt-get install {program})")


def eventually(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that its parent has not collected yet does not."""
    return start_ticks(pid) is not None


def of_session(leader: int) -> list[int]:
    """Return the processes of a session, those that ended and were not collected yet, too."""
    pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if (fields := stat_fields(pid)) and int(fields[3]) == leader]


def written_pid(file: Path) -> int:
    eventually(lambda: file.exists() and file.read_text().strip().isdigit())
    return int(file.read_text())


def trace_of(phone: Phone, fence: int = 1) -> RunTrace:
    """What the sampler of a run has written down so far."""
    trace = run_trace((phone.folder(fence) / "run.trace").read_text())
    assert trace is not None
    return trace


def wait_for_samples(phone: Phone, fence: int) -> None:
    """Wait until a sample of a run was begun and ended after this call."""
    trace = phone.folder(fence) / "run.trace"
    count = trace.read_text().count("\ns ")
    # One may have been under way.
    eventually(lambda: trace.read_text().count("\ns ") > count + 2)
