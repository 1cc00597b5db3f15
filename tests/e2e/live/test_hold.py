"""`farm live tvm` with a real adb server, a virtual phone, and a program that echoes in place of TVM's."""

import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agents.virtual.processes import process_environment
from farm.cli.devices.live.tracker import RPC_MAGIC, TRACKER_MAGIC, TrackerCode
from tests.e2e.farm.test_device_reservation import Lab, running_lab
from tests.support.farm.processes import eventually

pytestmark = pytest.mark.long

#: Like ours it ends with its input, or when the time is over; the last line goes to the command.
PROGRAM = """#!/bin/sh
[ "${1%%=*}" = --serve ] || exit 1
echo "serves a session of TVM's RPC for at most ${1#*=} s" >&2
echo uploaded >file
exec timeout "${1#*=}" cat
"""


@pytest.fixture(scope="module")
def one_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """For tests that give the phone back."""
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder) as lab:
        (folder / "server").write_text(PROGRAM)
        added = lab.command("harness", "add", "tvm_benchmark", str(folder / "server"))
        assert added.returncode == 0, added.stderr
        yield lab


@contextmanager
def held(lab: Lab, *words: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The command, and its port."""
    command = lab.start("live", "tvm", "bench-a", "--for", "1h", "--key", "pixel", *words)
    assert command.stderr is not None
    try:
        said = []
        for line in iter(command.stderr.readline, ""):
            said.append(line)
            if "tracker 127.0.0.1:" in line:
                break
        assert said[-1].startswith("  tracker"), "".join(said)
        yield command, int(said[-1].partition(",")[0].rpartition(":")[2])
    finally:
        command.kill()
        command.communicate()


def number_of(connection: socket.socket) -> int:
    return int(struct.unpack("<i", connection.recv(4, socket.MSG_WAITALL))[0])


def text_of(connection: socket.socket) -> str:
    return connection.recv(number_of(connection), socket.MSG_WAITALL).decode()


def say(connection: socket.socket, text: str) -> None:
    connection.sendall(struct.pack("<i", len(text)) + text.encode())


def session_of(port: int, options: str = "") -> socket.socket:
    """A session, as TVM's client opens one."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as tracker:
        tracker.sendall(struct.pack("<i", TRACKER_MAGIC))
        assert number_of(tracker) == TRACKER_MAGIC
        say(tracker, json.dumps([TrackerCode.REQUEST, "pixel", "", 1]))
        code, (host, at, match_key) = json.loads(text_of(tracker))
        assert code == TrackerCode.SUCCESS
    session = socket.create_connection((host, at), timeout=60)
    session.sendall(struct.pack("<i", RPC_MAGIC))
    say(session, f"client:{match_key}{options}")
    assert (number_of(session), text_of(session)) == (RPC_MAGIC, "server:pixel")
    return session


def echoed(session: socket.socket, content: bytes) -> bytes:
    session.sendall(content)
    return session.recv(len(content), socket.MSG_WAITALL)


def session_files(lab: Lab) -> list[str]:
    return sorted(path.name for path in work_folder(lab).glob("live-*/*"))


def session_folders(lab: Lab) -> list[Path]:
    return list(work_folder(lab).glob("live-*"))


def work_folder(lab: Lab) -> Path:
    return lab.phone.state / "data" / "local" / "tmp" / "benchfarm"


def serving(lab: Lab) -> list[int]:
    """The processes on the phone that serve a session."""
    names = (path.name for path in Path("/proc").iterdir())
    return [pid for pid in map(int, filter(str.isdigit, names)) if _is_serving(lab, pid)]


def _is_serving(lab: Lab, pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    owner = process_environment(pid).get(b"BENCHFARM_PHONE", b"")
    # The check of a phone that is back in the pool runs `timeout` with other commands.
    return owner == lab.phone.serial.encode() and b"cat" in words and words[0] in (b"cat", b"timeout")


def is_quiet(lab: Lab) -> bool:
    return not serving(lab) and not session_folders(lab)


def test_a_phone_is_held_served_and_given_back(one_lab: Lab) -> None:
    with held(one_lab) as (command, port), one_lab.farm.client() as client:
        assert client.device("bench-a").blocked_by == ("reserved",)
        for content in (b"first client", os.urandom(3_000_000)):
            with session_of(port) as session:
                assert echoed(session, content[:100]) == content[:100]
                assert session_files(one_lab) == ["file"]
            eventually(lambda: is_quiet(one_lab), "the session has ended, and left nothing")
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=60)
        assert command.returncode == 0, said
        assert "bench-a is back in the pool" in said
        assert client.device("bench-a").reserved_by is None
    assert is_quiet(one_lab)


def test_on_another_machine_the_phone_is_not_reserved(one_lab: Lab) -> None:
    with closing(sqlite3.connect(one_lab.farm.database_path)) as database:
        database.execute("UPDATE sessions SET boot_id = 'other-' || boot_id")
        database.commit()
        try:
            refused = one_lab.command("live", "tvm", "bench-a")
            with one_lab.farm.client() as client:
                assert client.device("bench-a").reserved_by is None
        finally:
            database.execute("UPDATE sessions SET boot_id = substr(boot_id, 7)")
            database.commit()
    assert "bench-a is attached to" in refused.stderr
    assert refused.returncode == 5
    assert "reserved" not in refused.stderr


def test_a_second_command_for_the_phone_is_refused_and_the_first_goes_on(one_lab: Lab) -> None:
    with held(one_lab) as (command, port), session_of(port) as session:
        second = one_lab.command("live", "tvm", "bench-a")
        assert second.returncode == 2
        assert "another `farm live tvm` serves bench-a" in second.stderr
        assert echoed(session, b"here") == b"here"
        with one_lab.farm.client() as client:
            assert client.device("bench-a").reserved_by == "anna"
        command.send_signal(signal.SIGINT)
        assert "is back in the pool" in command.communicate(timeout=60)[1]
    refused = one_lab.command("live", "tvm", "bench-a", "--key", "pixel 8")
    assert refused.returncode == 2
    assert "'pixel 8' is no key" in refused.stderr


def test_bytes_of_a_session_arrive_in_both_directions_as_they_were_sent(one_lab: Lab) -> None:
    content = os.urandom(2_000_000)
    with held(one_lab) as (_, port), session_of(port) as session:
        sender = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=session.fileno(), pass_fds=[session.fileno()]
        )
        assert sender.stdin is not None
        received = bytearray()
        for at in range(0, len(content), 50_000):
            sender.stdin.write(content[at : at + 50_000])
            sender.stdin.flush()
            received += session.recv(50_000, socket.MSG_WAITALL)
        sender.stdin.close()
        sender.wait()
        assert bytes(received) == content


def test_a_command_that_is_killed_leaves_no_session_on_the_phone(one_lab: Lab) -> None:
    with held(one_lab) as (command, port), session_of(port) as session:
        assert echoed(session, b"here") == b"here"
        assert serving(one_lab)
        command.kill()
        assert session.recv(1) == b""
        eventually(lambda: is_quiet(one_lab), "the session has ended, and left nothing")
    # The reservation is still the same person's: the next command goes on, and releases it.
    with held(one_lab) as (command, port):
        with session_of(port) as session:
            assert echoed(session, b"again") == b"again"
        command.terminate()
        assert "is back in the pool" in command.communicate(timeout=60)[1]


def test_a_reservation_that_another_person_ends_ends_the_session(one_lab: Lab) -> None:
    with held(one_lab) as (command, port), session_of(port) as session:
        assert echoed(session, b"here") == b"here"
        assert one_lab.command("device", "release", "bench-a", "--force", FARM_USER="bert").returncode == 0
        assert session.recv(1) == b""
        _, said = command.communicate(timeout=60)
        assert command.returncode == 0
        assert "The hold has ended: bench-a is not reserved by you" in said
    assert is_quiet(one_lab)


def test_the_time_of_a_hold_bounds_its_sessions(one_lab: Lab) -> None:
    with held(one_lab, "--for", "20s") as (command, port), session_of(port, " -timeout=600") as session:
        assert echoed(session, b"here") == b"here"
        assert session.recv(1) == b""
        _, said = command.communicate(timeout=60)
        assert command.returncode == 0, said
        assert 0 < int(said.partition(" for at most ")[2].partition(" s")[0]) <= 20
    assert is_quiet(one_lab)
    with one_lab.farm.client() as client:
        eventually(lambda: client.device("bench-a").reserved_by is None, "the reservation has ended")


def test_another_persons_phone_is_not_taken(one_lab: Lab) -> None:
    assert one_lab.command("device", "reserve", "bench-a", "--for", "1h", FARM_USER="bert").returncode == 0
    refused = one_lab.command("live", "tvm", "bench-a")
    assert refused.returncode == 2
    assert "bench-a is reserved by bert" in refused.stderr
    with one_lab.farm.client() as client:
        assert client.device("bench-a").reserved_by == "bert"
    assert one_lab.command("device", "release", "bench-a", FARM_USER="bert").returncode == 0


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_serves_nothing_is_named_and_the_phone_released(
    one_lab: Lab, tmp_path: Path, code: int
) -> None:
    (tmp_path / "old").write_text(
        f"#!/bin/sh\necho \"ERROR: unknown command line flag 'serve'\" >&2\nexit {code}\n"
    )
    assert one_lab.command("harness", "add", "anna/tvm_benchmark", str(tmp_path / "old")).returncode == 0
    refused = one_lab.command("live", "tvm", "bench-a", "--harness", "anna/tvm_benchmark")
    assert refused.returncode == 2
    assert "old serves no session on" in refused.stderr
    assert "unknown command line flag 'serve'" in refused.stderr
    with one_lab.farm.client() as client:
        assert client.device("bench-a").reserved_by is None
    assert is_quiet(one_lab)
