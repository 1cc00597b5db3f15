"""A virtual phone under the adb command line, which we did not write."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.adb.server import AdbServer, bundled_adb

pytestmark = pytest.mark.anyio


async def run_adb(server: AdbServer, serial: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(bundled_adb()), "-L", server.address, "-s", serial, *words]
    return await asyncio.to_thread(
        subprocess.run,
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


async def test_shell_gives_output_and_exit_code(server: AdbServer, device: AdbDevice) -> None:
    result = await run_adb(server, device.serial, "shell", "echo out; echo err >&2; exit 3")

    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")


async def test_exec_out_gives_raw_bytes(server: AdbServer, device: AdbDevice) -> None:
    assert (await run_adb(server, device.serial, "exec-out", "printf 'a\\r\\nb'")).stdout.endswith("b")


async def test_files_and_folders_go_there_and_back(
    server: AdbServer, device: AdbDevice, tmp_path: Path
) -> None:
    source = tmp_path / "tree"
    (source / "below").mkdir(parents=True)
    (source / "small").write_text("small")
    (source / "below" / "large").write_bytes(bytes(range(256)) * 20_000)

    pushed = await run_adb(server, device.serial, "push", str(source), f"{tmp_path}/remote")
    pulled = await run_adb(server, device.serial, "pull", f"{tmp_path}/remote", f"{tmp_path}/back")

    assert (pushed.returncode, pulled.returncode) == (0, 0), pushed.stderr + pulled.stderr
    for name in ("small", "below/large"):
        assert (tmp_path / "back" / name).read_bytes() == (source / name).read_bytes()


async def test_what_the_phone_does_not_offer_is_refused(server: AdbServer, device: AdbDevice) -> None:
    assert (await run_adb(server, device.serial, "jdwp")).stdout == ""
    assert (await run_adb(server, device.serial, "reverse", "tcp:1", "tcp:2")).returncode != 0


async def test_the_phone_says_what_it_is_in_androids_words(server: AdbServer, device: AdbDevice) -> None:
    whole = (await run_adb(server, device.serial, "shell", "getprop")).stdout
    abi = (await run_adb(server, device.serial, "shell", "getprop ro.product.cpu.abi")).stdout.strip()
    absent = (
        await run_adb(server, device.serial, "shell", "getprop no.such.thing; getprop no.such 5")
    ).stdout

    assert "[ro.benchfarm.virtual]: [1]\n" in whole
    assert f"[ro.product.cpu.abilist]: [{abi}]\n" in whole
    assert absent == "\n5\n"


async def test_properties_and_settings_are_kept_but_facts_are_not_changed(
    server: AdbServer, device: AdbDevice
) -> None:
    script = (
        "setprop debug.a 'b c'; getprop debug.a; setprop ro.serialno x; echo $?;"
        " settings get global nothing; settings put global stay 3; settings get global stay"
    )
    result = await run_adb(server, device.serial, "shell", script)

    assert result.stdout == "b c\n1\nnull\n3\n"


async def test_the_log_is_printed_and_emptied(server: AdbServer, device: AdbDevice) -> None:
    result = await run_adb(server, device.serial, "shell", "logcat -c && logcat -d; echo $?; dumpsys nothing")

    assert result.stdout == "0\n"
    assert result.stderr == "Can't find service: nothing\n"
