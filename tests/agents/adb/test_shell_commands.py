"""Commands over shell v2, through a real adb server, in a virtual phone's shell."""

import asyncio
import contextlib
import os
import select
import signal
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.host.process import start_ticks
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.errors import DeviceProtocol, DeviceTimeout

pytestmark = pytest.mark.anyio
DEADLINE_S = 120.0


async def test_exit_code_stdout_and_stderr_arrive_apart(device: AdbDevice) -> None:
    result = await device.shell("echo out; echo err >&2; exit 7", deadline_s=DEADLINE_S)

    assert (result.exit_code, result.stdout, result.stderr) == (7, b"out\n", b"err\n")


async def test_a_command_line_reaches_the_shell_unparsed(device: AdbDevice) -> None:
    result = await device.shell("printf '%s|' 'a  b' \"$((1 + 1))\" # comment", deadline_s=DEADLINE_S)

    assert result.stdout == b"a  b|2|"


async def test_a_death_by_signal_gives_128_and_the_signal(device: AdbDevice) -> None:
    result = await device.shell("kill -KILL $$", deadline_s=DEADLINE_S)

    assert result.exit_code == 128 + signal.SIGKILL


async def test_stdin_travels_whole_while_output_comes_back(device: AdbDevice) -> None:
    sent = bytes(range(256)) * 16384

    result = await device.shell("cat", deadline_s=DEADLINE_S, stdin=sent, limit_bytes=len(sent))

    assert result.stdout == sent


async def test_a_command_without_input_sees_its_end(device: AdbDevice) -> None:
    assert (await device.shell("cat; echo end", deadline_s=DEADLINE_S)).stdout == b"end\n"


async def test_a_command_that_reads_no_input_still_ends(device: AdbDevice) -> None:
    result = await device.shell("exec <&-; echo done", deadline_s=DEADLINE_S, stdin=bytes(4_000_000))

    assert result.stdout == b"done\n"


async def test_output_over_the_limit_is_counted_not_kept(device: AdbDevice) -> None:
    command = "head -c 3000000 /dev/zero; echo err >&2"

    result = await device.shell(command, deadline_s=DEADLINE_S, limit_bytes=1000)

    assert len(result.stdout) == 1000
    assert result.stderr == b"err\n"
    assert result.dropped_bytes == 3_000_000 - 1000


async def test_twenty_commands_at_once_keep_their_answers_apart(device: AdbDevice) -> None:
    commands = (device.shell(f"echo {number}; exit {number}", deadline_s=DEADLINE_S) for number in range(20))

    results = await asyncio.gather(*commands)

    assert [result.exit_code for result in results] == list(range(20))
    assert [result.stdout for result in results] == [b"%d\n" % number for number in range(20)]


@pytest.mark.fault(7)
async def test_a_dripping_command_does_not_outlive_its_deadline(device: AdbDevice) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(DeviceTimeout):
        await device.shell("while :; do echo drip; sleep 0.05; done", deadline_s=0.5)

    assert loop.time() - began < 2


async def test_cancelling_a_call_hangs_up_on_its_shell(device: AdbDevice, tmp_path: Path) -> None:
    pid = await _cancelled(device, f"echo $$ >{tmp_path}/pid; exec sleep 60", tmp_path / "pid")

    assert await asyncio.to_thread(_is_gone_in_time, pid)


async def test_a_hang_up_leaves_detached_children_alone(device: AdbDevice, tmp_path: Path) -> None:
    detached = f"setsid sh -c 'echo $$ >{tmp_path}/pid; exec sleep 60' </dev/null >/dev/null 2>&1 &"
    pid = await _cancelled(device, f"{detached} exec sleep 60", tmp_path / "pid")
    await device.shell("true", deadline_s=DEADLINE_S)

    assert start_ticks(pid) is not None
    await device.shell(f"kill {pid}", deadline_s=DEADLINE_S)


async def test_a_too_long_command_is_refused_with_the_reason(device: AdbDevice) -> None:
    with pytest.raises(DeviceProtocol, match="too long"):
        await device.shell("x" * 70000, deadline_s=DEADLINE_S)


async def test_the_environment_of_commands_holds_nothing_of_ours(device: AdbDevice) -> None:
    text = (await device.shell("env", deadline_s=DEADLINE_S)).stdout.decode()

    names = {line.partition("=")[0] for line in text.splitlines()}
    set_by_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    ours = {"ANDROID_DATA", "HOME", "PATH", "SHELL", "TMPDIR", "USER"} | {
        f"BENCHFARM_{name}" for name in ("BOOT_ID", "INIT", "PHONE", "PROC", "SYS")
    }
    assert names - set_by_shell == ours


async def test_a_program_for_benchfarm_python_finds_its_interpreter(
    device: AdbDevice, shared_phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/usr/bin/env benchfarm-python\nimport sys\nprint(sys.prefix, *sys.argv[1:])\n")
    remote = f"{shared_phone.state}/data/local/tmp/program"
    await device.push(program, remote, mode=0o755, deadline_s=DEADLINE_S)

    result = await device.shell(f"{remote} 'a b'", deadline_s=DEADLINE_S)

    assert result.exit_code == 0
    assert result.stdout.decode().endswith(" a b\n")


async def _cancelled(device: AdbDevice, command: str, fifo: Path) -> int:
    """Run a command until it has written its pid to the pipe, cancel the call, and give the pid."""
    os.mkfifo(fifo)
    call = asyncio.create_task(device.shell(command, deadline_s=60))
    pid = await device.shell(f"cat {fifo}", deadline_s=DEADLINE_S)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    return int(pid.stdout)


def _is_gone_in_time(pid: int) -> bool:
    try:
        pinned = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pinned], [], [], DEADLINE_S)[0])
    finally:
        os.close(pinned)
