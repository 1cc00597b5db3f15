"""The folder of a virtual phone: its commands, its properties, and the environment of what runs in it.

bin/                Android's commands, found first on PATH
properties          what getprop prints
dumpsys/ settings/  what those answer
sys/                its part of sysfs
data/local/tmp/     the work root
boot_id boots       which boot this is
phone.json port lock faults.json faults-taken.json journal.jsonl journal.jsonl.1
adb_keys            whom the phone lets in; everybody while it is missing
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from agents.virtual.processes.boot import BOOT_ID_FILE, BOOT_ID_VARIABLE
from agents.virtual.processes.process_monitor import DEVICE_VARIABLE
from agents.virtual.state import profile
from agents.virtual.state.faults import Faults
from agents.virtual.state.sysfs import SYS_FOLDER, SYS_VARIABLE, create_sysfs


def shell_environment(outer: Mapping[str, str], state: Path, serial: str, shell: str) -> dict[str, str]:
    """Return the whole environment of commands: nothing of ours leaks into a measurement.

    The tools are the host's, after the phone's own; a virtual environment's are not among them.
    """
    ours = str(Path(sys.prefix) / "bin")
    path = [part for part in outer.get("PATH", os.defpath).split(os.pathsep) if part and part != ours]
    return {
        "PATH": os.pathsep.join([str(state / "bin"), *path]),
        "HOME": str(state / "data"),
        "TMPDIR": str(state / "tmp"),
        "SHELL": shell,
        "USER": "shell",
        "ANDROID_DATA": str(state / "data"),
        DEVICE_VARIABLE: serial,
        BOOT_ID_VARIABLE: str(state / BOOT_ID_FILE),
        SYS_VARIABLE: str(state / SYS_FOLDER),
    }


def create_sandbox(state: Path, serial: str, *, shared_cpu: bool = True) -> dict[str, str]:
    """Create missing folders, write the files, and return the phone's properties."""
    work_root = state / "data" / "local" / "tmp"
    for folder in (work_root, state / "tmp", state / "bin", state / "dumpsys", state / "settings"):
        folder.mkdir(parents=True, exist_ok=True)
    create_sysfs(state)
    for script in files("agents.virtual").joinpath("bin").iterdir():
        _install(state / "bin" / script.name, script.read_text())
    # A shebang accepts no path with spaces, and the path is not known in advance; a name on PATH works.
    _install(state / "bin" / "benchfarm-python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    cpuinfo = Path("/proc/cpuinfo").read_text()
    values = profile.properties(serial, work_root, cpuinfo, profile.cpu_domain() if shared_cpu else None)
    replace_file(state / "properties", profile.getprop_text(values))
    return values


def _install(path: Path, text: str) -> None:
    replace_file(path, text, mode=0o755)


def replace_file(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file atomically."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text)
    draft.chmod(mode)
    draft.replace(path)


def write_properties(state: Path, properties: Mapping[str, str], faults: Faults) -> None:
    """Write the properties that getprop prints."""
    is_up = {"sys.boot_completed": ""} if faults.boot_loop else {}
    fingerprint = properties["ro.build.fingerprint"]
    build = {"ro.build.fingerprint": f"{fingerprint}/{faults.build}"} if faults.build else {}
    replace_file(state / "properties", profile.getprop_text({**properties, **build, **is_up}))


def write_dumpsys(state: Path, faults: Faults) -> None:
    """Write the output of dumpsys."""
    replace_file(state / "dumpsys" / "battery", profile.dumpsys_battery(faults))
    replace_file(state / "dumpsys" / "thermalservice", profile.dumpsys_thermalservice(faults))


def write_slowness(state: Path, faults: Faults) -> None:
    """Have each file hashed several times from now on: really slower, by that factor, on any machine."""
    shim = state / "bin" / "sha256sum"
    if faults.slow <= 1:
        shim.unlink(missing_ok=True)
    elif (real := shutil.which("sha256sum")) is not None:
        again = f'for _ in $(seq {faults.slow - 1}); do {real} "$@" >/dev/null 2>&1; done'
        # Standard input can be read only once.
        _install(shim, f'#!/bin/sh\n[ $# -eq 0 ] || {again}\nexec {real} "$@"\n')
