"""The lives of virtual phones: found again, ended by pid, journals kept across deaths."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.host.process import command_line, end_process, start_ticks
from agents.virtual.pool import VirtualDeviceHandle, find_device, start_devices, stop_devices
from agents.virtual.processes import JOURNAL_FILE
from tests.support.agents.run_spans import overlapping_runs, run_spans

DEADLINE_S = 120.0
Attach = Callable[[VirtualDeviceHandle], Awaitable[AdbDevice]]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "phones"
    stop_devices(tmp_path / "phones")


def test_phones_of_an_earlier_life_are_found_and_missing_ones_started(folder: Path) -> None:
    first = start_devices(1, folder)
    both = start_devices(2, folder)

    assert both[0] == first[0]
    assert start_devices(2, folder) == both
    assert len({phone.serial for phone in both}) == 2


def test_a_killed_phone_comes_back_with_its_serial_and_port(folder: Path) -> None:
    (before,) = start_devices(1, folder)
    _kill(before.pid)
    assert find_device(before.state) is None

    (after,) = start_devices(1, folder)

    assert (after.serial, after.address) == (before.serial, before.address)
    assert after.pid != before.pid


@pytest.mark.long
def test_a_phone_is_started_again_for_another_nnapi_library(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(b"content")
    (without,) = start_devices(1, folder)
    (having,) = start_devices(1, folder, nnapi=library)
    assert (having.address, having.pid == without.pid) == (without.address, False)
    assert (having.state / "lib" / "libneuralnetworks.so").read_bytes() == b"content"
    assert "IDevice/nnapi-reference" in (having.state / "services").read_text()
    assert start_devices(1, folder, nnapi=library) == [having]

    (again,) = start_devices(1, folder)
    assert again.pid != having.pid
    assert not (again.state / "lib" / "libneuralnetworks.so").exists()
    assert not (again.state / "services").exists()


def test_stopped_phones_are_gone_with_their_records(folder: Path) -> None:
    phones = start_devices(2, folder)
    stop_devices(folder)

    assert [start_ticks(phone.pid) for phone in phones] == [None, None]
    assert [find_device(phone.state) for phone in phones] == [None, None]


def test_a_record_with_a_strangers_pid_ends_no_one(folder: Path) -> None:
    (phone,) = start_devices(1, folder)
    record = phone.state / "phone.json"
    true_record = record.read_text()
    record.write_text(true_record.replace(str(phone.pid), str(os.getpid())))

    stop_devices(folder)

    assert start_ticks(phone.pid) is not None
    record.write_text(true_record)


def test_a_folder_has_one_phone_at_most(folder: Path) -> None:
    (phone,) = start_devices(1, folder)
    record = (phone.state / "phone.json").read_text()
    (phone.state / "phone.json").unlink()
    second = command_line(phone.pid)

    assert os.spawnv(os.P_WAIT, second[0], [*second]) == 1
    (phone.state / "phone.json").write_text(record)


@pytest.mark.anyio
@pytest.mark.skipif(shutil.which("mksh") is None, reason="mksh is not installed")
async def test_a_phone_with_mksh_runs_commands_in_it(folder: Path, attach: Attach) -> None:
    (phone,) = start_devices(1, folder, shell="mksh")
    device = await attach(phone)

    result = await device.shell("echo ${KSH_VERSION:+mksh}", deadline_s=DEADLINE_S)

    assert result.stdout == b"mksh\n"


@pytest.mark.anyio
async def test_the_journal_has_runs_one_after_the_other(folder: Path, attach: Attach) -> None:
    (phone,) = start_devices(1, folder)
    device = await attach(phone)
    for fence in (1, 2):
        await device.shell(f"{_seen_run(phone, fence)}; {_gone(phone, fence)}", deadline_s=DEADLINE_S)

    spans = run_spans(phone.state / JOURNAL_FILE)

    assert [span.fence for span in spans] == [1, 2]
    assert all(span.first_seen_ns <= span.last_seen_ns for span in spans)
    assert overlapping_runs(spans) == []


@pytest.mark.anyio
async def test_the_journal_shows_runs_at_the_same_time(folder: Path, attach: Attach) -> None:
    (phone,) = start_devices(1, folder)
    device = await attach(phone)

    first = f"BENCHFARM_RUN=1 sleep 60 & first=$!; {_seen(phone, 1)}"
    both = f"{first}; {_seen_run(phone, 2)}; {_gone(phone, 2)}; kill $first"
    await device.shell(both, deadline_s=DEADLINE_S)

    ((first, second),) = overlapping_runs(run_spans(phone.state / JOURNAL_FILE))
    assert {first.fence, second.fence} == {1, 2}


@pytest.mark.anyio
async def test_a_run_outlives_its_phone_and_stays_in_the_journal(folder: Path, attach: Attach) -> None:
    (phone,) = start_devices(1, folder)
    device = await attach(phone)
    detached = "BENCHFARM_RUN=7 setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $!"
    pid = int((await device.shell(f"{detached}; {_seen(phone, 7)}", deadline_s=DEADLINE_S)).stdout)
    _kill(phone.pid)
    start_devices(1, folder)
    assert start_ticks(pid) is not None
    (seen_before,) = run_spans(phone.state / JOURNAL_FILE)

    _kill(pid)
    # adb needs a second or two to find a phone again.
    await asyncio.to_thread(subprocess.run, ["sh", "-c", _gone(phone, 7)], check=True, timeout=DEADLINE_S)
    (span,) = run_spans(phone.state / JOURNAL_FILE)

    assert span.fence == 7
    assert span.last_seen_ns >= seen_before.last_seen_ns


def _seen_run(phone: VirtualDeviceHandle, fence: int) -> str:
    """A command that runs until the journal has it."""
    return f"BENCHFARM_RUN={fence} sleep 60 & pid=$!; {_seen(phone, fence)}; kill $pid"


def _seen(phone: VirtualDeviceHandle, fence: int) -> str:
    return _awaited(phone, f'"seen".*"fence": {fence},')


def _gone(phone: VirtualDeviceHandle, fence: int) -> str:
    return _awaited(phone, f'"gone".*"fence": {fence},')


def _awaited(phone: VirtualDeviceHandle, line: str) -> str:
    return f"until grep -q '{line}' {phone.state / JOURNAL_FILE}; do sleep 0.02; done"


def _kill(pid: int) -> None:
    assert end_process(pid, lambda _: True, deadline_s=DEADLINE_S, signals=[signal.SIGKILL])
