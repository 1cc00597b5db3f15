"""Which processes are a run's: on virtual phones, and under every shell that the script must run under."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import join

import pytest

from agents.adb.client import AdbDevice
from agents.device.paths import run_folder, work_folder
from agents.device.run.run_control import clean_run, start_run, wait_run
from tests.agents.device.run.escapee import escape_command
from tests.support.agents.shell_phone import ALL_SHELLS, Phone, alive, shell_phone, written_pid

#: Runs a command on a phone whose init this process becomes.
UNDER_INIT = """
import os, sys
from pathlib import Path
from agents.virtual.init import start_init
if (code := start_init(Path(sys.argv[1]))) is None:
    os.execv(sys.argv[2], sys.argv[2:])
sys.exit(code)
"""
RUNNING = 12


@pytest.fixture(params=ALL_SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    with shell_phone(request.param, tmp_path) as phone:
        yield phone


@pytest.fixture
def escaped(tmp_path: Path) -> Iterator[Path]:
    """The file in which an escaped process says its number; it ends with the file."""
    yield tmp_path / "escaped"
    (tmp_path / "escaped").unlink(missing_ok=True)


def under_init(phone: Phone, tmp_path: Path, *lines: str) -> int:
    """Run lines of shell as what adbd starts; `supervisor` in them is the script."""
    script = "\n".join(
        [
            f"cd {join([str(tmp_path)])}",
            f'supervisor() {{ {join([*phone.shell, str(phone.script)])} "$@"; }}',
            *lines,
        ]
    )
    words = [sys.executable, "-c", UNDER_INIT, str(tmp_path / "init"), *phone.shell, "-c", script]
    # Not waited for as a whole: the init stays for what a test leaves behind on purpose.
    init = subprocess.Popen(words, env=phone.env, start_new_session=True, stdout=subprocess.DEVNULL)
    return init.wait(60)


def called(phone: Phone, command: str, fence: int, argument: int = 0) -> str:
    return f"supervisor {command} {join([str(phone.work)])} {fence} {argument}"


@pytest.mark.invariant("I7", "I8")
@pytest.mark.fault(14)
def test_clean_ends_what_left_the_mark_of_its_run_behind(shell: Phone, tmp_path: Path, escaped: Path) -> None:
    shell.prepare(1, escape_command(escaped, shell.work / "runs"))
    lines = [called(shell, "start", 1, 600), called(shell, "wait", 1, 60), called(shell, "clean", 1)]
    assert under_init(shell, tmp_path, " && ".join(lines)) == 0
    assert not alive(written_pid(escaped))
    assert not shell.folder(1).exists()


def test_clean_ends_neither_what_is_older_than_the_run_nor_what_adb_runs(
    shell: Phone, tmp_path: Path
) -> None:
    shell.prepare(1, "setsid env -i /bin/sleep 60 & true")
    under_init(
        shell,
        tmp_path,
        # Its parent ends at once, as that of a daemon.
        "(sleep 60 & echo $! >&3) 3>elder",
        "sleep 0.2",
        called(shell, "start", 1, 600),
        "sleep 60 & child=$!",
        called(shell, "wait", 1, 60),
        called(shell, "clean", 1),
        "read -r elder <elder",
        'for pid in "$elder" "$child"; do kill "$pid" && echo "lived"; done >seen',
    )
    assert (tmp_path / "seen").read_text() == "lived\nlived\n"


def test_clean_leaves_a_newer_run_alone_that_init_has_too(shell: Phone, tmp_path: Path) -> None:
    shell.prepare(1, "true")
    shell.prepare(2, "exec sleep 60")
    under_init(
        shell,
        tmp_path,
        called(shell, "start", 1, 600),
        called(shell, "wait", 1, 60),
        "sleep 0.2",
        called(shell, "start", 2, 600),
        called(shell, "clean", 1),
        called(shell, "wait", 2),
        "echo $? >seen",
        called(shell, "clean", 2),
    )
    assert (tmp_path / "seen").read_text() == f"{RUNNING}\n"


@pytest.mark.invariant("I7", "I8")
def test_a_run_cannot_make_the_folder_of_the_next_one(shell: Phone) -> None:
    shell.run(1, 'mkdir ../2; for f in exit supervisor stdout; do echo "code=0" >"../2/$f"; done')
    assert shell.call("clean", 1) == 0
    assert not shell.folder(2).exists()
    shell.run(2, "echo measured")
    assert (shell.folder(2) / "stdout").read_text() == "measured\n"


@pytest.mark.anyio
@pytest.mark.invariant("I7", "I8")
@pytest.mark.fault(14)
async def test_no_run_writes_into_the_output_of_the_next(
    device: AdbDevice, work_root: str, escaped: Path
) -> None:
    runs = Path(work_folder(work_root), "runs")
    await start_run(device, 1, ["sh", "-c", escape_command(escaped, runs)], {}, 60)
    await wait_run(device, 1, deadline_s=60)
    pid = written_pid(escaped)
    assert alive(pid)
    await clean_run(device, 1)
    assert not alive(pid)
    await start_run(device, 2, ["sh", "-c", "sleep 0.3; echo measured"], {}, 60)
    await wait_run(device, 2, deadline_s=60)
    assert (
        await device.shell(f"cat '{run_folder(work_root, 2)}/stdout'", deadline_s=60)
    ).text == "measured\n"
    await clean_run(device, 2)


@pytest.mark.anyio
async def test_what_a_person_runs_by_adb_outlives_the_clean_up(device: AdbDevice, work_root: str) -> None:
    """A reserved device runs no job, and is cleaned up all the same when its agent starts again."""
    await start_run(device, 1, ["true"], {}, 60)
    await wait_run(device, 1, deadline_s=60)
    told = Path(work_root, "told")
    by_hand = asyncio.create_task(device.shell(f"sleep 60 & echo $! >'{told}'; wait $!", deadline_s=60))
    pid = await asyncio.to_thread(written_pid, told)
    await clean_run(device, 1)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    assert (await by_hand).exit_code == 128 + signal.SIGKILL
