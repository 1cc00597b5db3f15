"""The virtual phones of one folder: started when missing, found when alive, ended by pid."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import agents
from agents.host.log_rotation import rotate_if_over
from agents.host.process import end_process, start_ticks
from agents.virtual.device import RECORD, TICK_S
from agents.virtual.sandbox import find_mount_error, nnapi_library
from farm.core.errors import HostError

START_DEADLINE_S = 30.0
#: Starting Python takes a fraction of a second each.
START_DEADLINE_EACH_S = 1.0
STOP_DEADLINE_S = 5.0
POLL_S = 0.02
#: Checked when a phone is started: a sound one writes nothing there.
LOG_LIMIT_BYTES = 4 * 1024 * 1024
LOG = "phone.log"
#: Beside the phones, where the library that they have copies of is built.
NNAPI_FOLDER = "nnapi"
_SUFFIX = "suffix"
#: The phone outlives its parent without becoming its zombie: the intermediate shell ends at once.
_DETACH = '"$@" </dev/null >>"$LOG" 2>&1 &'


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualDeviceHandle:
    """A virtual phone that listens."""

    serial: str
    #: host:port, for `adb connect`.
    address: str
    pid: int
    #: Its folder: journal, faults, log.
    state: Path


def start_devices(
    count: int,
    folder: Path,
    *,
    shell: str = "/bin/sh",
    shared_cpu: bool = True,
    tick_s: float = TICK_S,
    storage_mib: int | None = None,
    nnapi: Path | None = None,
) -> list[VirtualDeviceHandle]:
    """Start `count` virtual phones, or find those that run already; block until all listen.

    They outlive the caller, until `stop_devices`. With `storage_mib` each started one has that much storage
    of its own, in a private mount. With `nnapi` each has a copy of this NNAPI library, else none: those that
    run with another one are started again.

    Raises:
        HostError: one does not come up, its log is named; or this machine gives no storage of their own.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--shell", shell, "--tick", str(tick_s), *([] if shared_cpu else ["--own-cpu"])]
    if storage_mib is not None:
        if (obstacle := find_mount_error(folder)) is not None:
            hint = "unshare(1) and user namespaces are required; without a size they use the machine's disk"
            raise HostError(f"no virtual phone can have separate storage here: {obstacle}", hint=hint)
        options += ["--storage", str(storage_mib)]
    if nnapi is not None:
        options += ["--nnapi", str(nnapi.resolve())]
    suffix = _suffix(folder)
    states = [folder / f"virtual-{suffix}-{number}" for number in range(count)]
    for state in states:
        device = find_device(state)
        if device is not None and not _has_library(state, nnapi):
            _end(device)
            device = None
        if device is None:
            _start(state, options)
    deadline = time.monotonic() + START_DEADLINE_S + count * START_DEADLINE_EACH_S
    return [_await_device(state, deadline) for state in states]


def stop_devices(folder: Path) -> None:
    """End all virtual phones of the folder; block until they are gone. Detached runs on them continue."""
    for record in sorted(folder.glob(f"*/{RECORD}")):
        if (device := find_device(record.parent)) is not None:
            _end(device)


def build_nnapi_library(folder: Path) -> Path:
    """Return the NNAPI reference library in a folder, built where it is missing or of other sources; blocks.

    Raises:
        HostError: it cannot be built here.
    """
    script = str(files("harnesses").joinpath("nnapi_reference", "build.py"))
    built = subprocess.run([sys.executable, script, str(folder)], capture_output=True, text=True, check=False)
    if built.returncode:
        reason = (built.stderr.strip().splitlines() or [f"exit code {built.returncode}"])[-1]
        raise HostError(
            f"NNAPI's reference library cannot be built: {reason}",
            hint="it needs a C++ compiler: on Debian and Ubuntu, apt install g++",
        )
    return Path(built.stdout.strip())


def find_device(state: Path) -> VirtualDeviceHandle | None:
    """Return the live virtual phone of a folder; None without a record, or after a kill."""
    try:
        record = json.loads((state / RECORD).read_text())
        pid, ticks, port, serial = (record[name] for name in ("pid", "ticks", "port", "serial"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if start_ticks(pid) != ticks:
        return None
    return VirtualDeviceHandle(serial=serial, address=f"127.0.0.1:{port}", pid=pid, state=state)


def _has_library(state: Path, library: Path | None) -> bool:
    """Tell whether a phone has this NNAPI library, or none where None is given."""
    installed = nnapi_library(state)
    if library is None or not installed.exists():
        return library is None and not installed.exists()
    return installed.read_bytes() == library.read_bytes()


def _end(device: VirtualDeviceHandle) -> None:
    end_process(device.pid, partial(_is_device, device.state), deadline_s=STOP_DEADLINE_S)


def _is_device(state: Path, pid: int) -> bool:
    device = find_device(state)
    return device is not None and device.pid == pid


def _start(state: Path, options: Sequence[str]) -> None:
    state.mkdir(exist_ok=True)
    rotate_if_over(state / LOG, LOG_LIMIT_BYTES)
    device = [sys.executable, "-m", "agents.virtual", "--state", str(state), "--serial", state.name]
    subprocess.run(
        ["/bin/sh", "-c", _DETACH, "sh", *device, *options],
        env={**os.environ, "LOG": str(state / LOG)},
        # Where `agents` is found, installed or not.
        cwd=Path(agents.__file__).parent.parent,
        start_new_session=True,
        check=True,
    )


def _await_device(state: Path, deadline: float) -> VirtualDeviceHandle:
    while (device := find_device(state)) is None:
        if time.monotonic() > deadline:
            raise HostError(f"virtual phone {state.name} does not start", hint=f"see {state / LOG}")
        time.sleep(POLL_S)
    return device


def _suffix(folder: Path) -> str:
    """Return four hexadecimal digits that distinguish this folder's phones from all others."""
    path = folder / _SUFFIX
    if not path.exists():
        path.write_text(secrets.token_hex(2))
    return path.read_text()
