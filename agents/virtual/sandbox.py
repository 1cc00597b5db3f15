"""The folder of a virtual phone: its commands, its properties, and the environment of what runs in it.

Its properties and the output of its dumpsys are facts of this machine in Android's formats.

bin/                Android's commands, found first on PATH
lib/ services       NNAPI's library and the drivers that `service list` prints, where it was given one
properties          what getprop prints
dumpsys/ settings/  what those answer
sys/                its part of sysfs
course.json         what changes there during a run: agents.virtual.course
proc/               the status of its processes, while a course changes it
data/local/tmp/     the work root
boot_id boots       which boot this is
init                the parents of what lost its own: agents.virtual.init
phone.json port lock faults.json faults-taken.json journal.jsonl journal.jsonl.1
adb_keys            whom the phone lets in; everybody while it is missing
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from agents.host.process import host_boot_id
from agents.virtual.faults import Faults
from agents.virtual.init import INIT_VARIABLE
from agents.virtual.processes import BOOT_ID_FILE, BOOT_ID_VARIABLE, DEVICE_VARIABLE

_ABI_BY_MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64-v8a", "arm64": "arm64-v8a"}
#: The shell and dumpsys formats are those of Android 14; it does not claim to be a release of Android.
API_LEVEL = 34
RELEASE = "virtual"
_NNAPI_INTERFACE = "android.hardware.neuralnetworks.IDevice"
#: On Android NNAPI's runtime has this driver in itself and registers no service; here it is the only one.
_NNAPI_SERVICE = f"{_NNAPI_INTERFACE}/nnapi-reference"
#: AOSP: temperature.aidl, TemperatureType.SKIN.
_SKIN = 3


def properties(
    serial: str, work_root: Path, cpuinfo: str, cpu_domain: str | None, nnapi: str | None = None
) -> dict[str, str]:
    """Return the system properties; `cpuinfo` is the text of /proc/cpuinfo, `nnapi` its library's digest."""
    machine = platform.machine()
    abi = _ABI_BY_MACHINE.get(machine.lower(), machine)
    manufacturer, soc = host_soc(cpuinfo)
    return {
        "ro.serialno": serial,
        "ro.product.manufacturer": "benchfarm",
        "ro.product.brand": "benchfarm",
        "ro.product.model": f"virtual phone ({machine})",
        "ro.product.device": "virtual",
        "ro.product.name": "virtual",
        "ro.product.cpu.abi": abi,
        "ro.product.cpu.abilist": abi,
        "ro.soc.manufacturer": manufacturer,
        "ro.soc.model": soc,
        "ro.build.version.release": RELEASE,
        "ro.build.version.sdk": str(API_LEVEL),
        "ro.build.fingerprint": fingerprint(machine, nnapi),
        "ro.benchfarm.virtual": "1",
        **({"ro.benchfarm.cpu_domain": cpu_domain} if cpu_domain else {}),
        "ro.benchfarm.work_root": str(work_root),
        "sys.boot_completed": "1",
    }


def fingerprint(machine: str, nnapi: str | None = None) -> str:
    """Return the versions that results may depend on: project, interpreter, torch and NNAPI's library."""
    interpreter = f"python-{platform.python_version()}"
    build = f"benchfarm/virtual/{machine}:{_version('benchfarm')}/{interpreter}/torch-{_version('torch')}"
    return build if nnapi is None else f"{build}/nnapi-{nnapi[:12]}"


#: Vendors of x86 CPUs by their CPUID names.
_MAKER_BY_VENDOR_ID = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}


def host_soc(cpuinfo: str) -> tuple[str, str]:
    """Return manufacturer and model of the CPU. Kernels for ARM report numbers only."""
    rows = (line.partition(":") for line in cpuinfo.splitlines())
    values = {name.strip(): value.strip() for name, colon, value in rows if colon and value.strip()}
    if "model name" in values:
        vendor = values.get("vendor_id", "unknown")
        return _MAKER_BY_VENDOR_ID.get(vendor, vendor), values["model name"]
    part = f"{values.get('CPU implementer', '?')}:{values.get('CPU part', '?')}"
    return "unknown", values.get("Hardware", f"CPU {part}")


def cpu_domain() -> str:
    """Return an id shared by all phones on one CPU: containers share a kernel, hence its boot id."""
    return hashlib.sha256(f"cpu of {host_boot_id()}".encode()).hexdigest()[:16]


def getprop_text(values: Mapping[str, str]) -> str:
    """Return the output of `getprop`."""
    return "".join(f"[{name}]: [{value}]\n" for name, value in sorted(values.items()))


def banner(values: Mapping[str, str], features: tuple[str, ...], mode: str = "device") -> bytes:
    """Return the banner that the phone sends to adb."""
    names = ("ro.product.name", "ro.product.model", "ro.product.device")
    facts = "".join(f"{name}={values[name]};" for name in names)
    return f"{mode}::{facts}features={','.join(features)}".encode()


def dumpsys_battery(faults: Faults) -> str:
    """Return the output of `dumpsys battery`. No battery is reported unless a fault needs one."""
    present = faults.battery_level_pct is not None or faults.battery_c is not None
    level = 100 if faults.battery_level_pct is None else faults.battery_level_pct
    lines = [
        "Current Battery Service state:",
        f"  AC powered: {str(faults.charging).lower()}",
        "  USB powered: false",
        "  Wireless powered: false",
        f"  status: {2 if faults.charging else 3}",
        "  health: 1",
        f"  present: {str(present).lower()}",
        f"  level: {level}",
        "  scale: 100",
    ]
    if faults.battery_c is not None:
        lines.append(f"  temperature: {round(faults.battery_c * 10)}")
    return "\n".join(lines) + "\n"


def dumpsys_thermalservice(faults: Faults) -> str:
    """Return the output of `dumpsys thermalservice`; without a fault no HAL reports temperatures."""
    lines = ["IsStatusOverride: false", f"Thermal Status: {faults.thermal_status}", "Cached temperatures:"]
    if faults.skin_c is None:
        return "\n".join([*lines, "HAL Ready: false"]) + "\n"
    skin = (
        f"\tTemperature{{mValue={faults.skin_c}, mType={_SKIN}, mName=skin, mStatus={faults.thermal_status}}}"
    )
    hal = ["HAL Ready: true", "HAL connection:", "\tThermalHAL AIDL 1  connected: yes"]
    current = ["Current temperatures from HAL:", skin, "Current cooling devices from HAL:"]
    return "\n".join([*lines, skin, *hal, *current]) + "\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


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
        PROC_VARIABLE: str(state / PROC_FOLDER),
        **({"LD_LIBRARY_PATH": str(library.parent)} if (library := nnapi_library(state)).exists() else {}),
        **{name: value for name, value in outer.items() if name == INIT_VARIABLE},
    }


def create_sandbox(
    state: Path, serial: str, *, shared_cpu: bool = True, nnapi: Path | None = None
) -> dict[str, str]:
    """Create missing folders, write the files, and return the phone's properties.

    Args:
        state: the phone's folder.
        serial: its serial number.
        shared_cpu: True if it reports that it shares this machine's CPU.
        nnapi: NNAPI's library, of which the phone gets a copy; None for a phone without NNAPI.
    """
    work_root = state / "data" / "local" / "tmp"
    for folder in (work_root, state / "tmp", state / "bin", state / "dumpsys", state / "settings"):
        folder.mkdir(parents=True, exist_ok=True)
    create_sysfs(state)
    for script in files("agents.virtual").joinpath("bin").iterdir():
        _install(state / "bin" / script.name, script.read_text())
    # A shebang accepts no path with spaces, and the path is not known in advance; a name on PATH works.
    _install(state / "bin" / "benchfarm-python", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    cpuinfo = Path("/proc/cpuinfo").read_text()
    digest = _install_nnapi(state, nnapi)
    values = properties(serial, work_root, cpuinfo, cpu_domain() if shared_cpu else None, digest)
    replace_file(state / "properties", getprop_text(values))
    return values


def nnapi_library(state: Path) -> Path:
    """Return where a phone has NNAPI's library, by the name under which runtimes load it."""
    return state / "lib" / "libneuralnetworks.so"


def _install_nnapi(state: Path, library: Path | None) -> str | None:
    """Copy NNAPI's library and register its driver, or remove both; return the library's digest."""
    installed, services = nnapi_library(state), state / "services"
    if library is None:
        if installed.exists():
            installed.unlink()
            services.unlink(missing_ok=True)
        return None
    installed.parent.mkdir(exist_ok=True)
    draft = installed.with_suffix(".new")
    shutil.copyfile(library, draft)
    # A run that continues from before has the previous one loaded.
    draft.replace(installed)
    replace_file(services, f"Found 1 services:\n0\t{_NNAPI_SERVICE}: [{_NNAPI_INTERFACE}]\n")
    return hashlib.sha256(library.read_bytes()).hexdigest()


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
    replace_file(state / "properties", getprop_text({**properties, **build, **is_up}))


def write_dumpsys(state: Path, faults: Faults) -> None:
    """Write the output of dumpsys."""
    replace_file(state / "dumpsys" / "battery", dumpsys_battery(faults))
    replace_file(state / "dumpsys" / "thermalservice", dumpsys_thermalservice(faults))


def write_slowness(state: Path, faults: Faults) -> None:
    """Have each file hashed several times from now on: really slower, by that factor, on any machine."""
    shim = state / "bin" / "sha256sum"
    if faults.slow <= 1:
        shim.unlink(missing_ok=True)
    elif (real := shutil.which("sha256sum")) is not None:
        again = f'for _ in $(seq {faults.slow - 1}); do {real} "$@" >/dev/null 2>&1; done'
        # Standard input can be read only once.
        _install(shim, f'#!/bin/sh\n[ $# -eq 0 ] || {again}\nexec {real} "$@"\n')


#: Tells processes on the phone where it is; a real device has it at /sys.
SYS_VARIABLE = "BENCHFARM_SYS"
SYS_FOLDER = "sys"
#: Where it finds the status of processes, if that exists; a real device has it at /proc.
PROC_VARIABLE = "BENCHFARM_PROC"
PROC_FOLDER = "proc"
_CPU = Path("devices/system/cpu")


# Its cores are those of this machine. Its clocks are simulated: written values are kept and read back, and
# change nothing of the real CPU.
def create_sysfs(state: Path) -> None:
    """Write the machine's cores; existing files are kept."""
    cpu = state / SYS_FOLDER / _CPU
    cpu.mkdir(parents=True, exist_ok=True)
    for name in ("online", "possible", "present"):
        if not (cpu / name).exists():
            shutil.copyfile("/sys" / _CPU / name, cpu / name)


_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--")
_MOUNT = 'mount -t tmpfs -o "size=$1m" tmpfs "$2" && shift 2 && exec "$@"'
_CHECK_DEADLINE_S = 10.0


def find_mount_error(folder: Path) -> str | None:
    """Return why users of this machine cannot mount, as its own message; None where they can. Blocks."""
    try:
        tried = subprocess.run(
            _mount_command(folder, 1, ["true"]),
            capture_output=True,
            text=True,
            timeout=_CHECK_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return tried.stderr.strip() or f"exit code {tried.returncode}" if tried.returncode else None


# It is mounted in a namespace that lasts as long as some process of the phone does. A phone that is started
# again has empty storage, as after a factory reset.
def exec_device(state: Path, size_mib: int, arguments: Sequence[str]) -> None:
    """Replace this process by the same phone with that much storage.

    Raises:
        OSError: there is no unshare(1).
    """
    data = state.resolve() / "data"
    data.mkdir(parents=True, exist_ok=True)
    device = [sys.executable, "-m", "agents.virtual", *arguments]
    command = _mount_command(data, size_mib, device)
    os.execvp(command[0], command)


def _mount_command(folder: Path, size_mib: int, command: Sequence[str]) -> list[str]:
    return [*_NAMESPACE, "/bin/sh", "-c", _MOUNT, "sh", str(size_mib), str(folder), *command]


#: Root pauses charging there, as on devices with Qualcomm's chips.
_SUSPEND = "class/power_supply/battery/input_suspend"
_ROOTED = "rooted"


class SimulatedBattery:
    """The simulated level. It is simulated only: there is no battery to charge."""

    def __init__(self, state: Path) -> None:
        self._suspend = state / SYS_FOLDER / _SUSPEND
        self._rooted = state / _ROOTED
        #: The last values of the faults: a phone that was rooted in another way stays so.
        self._told_rooted = False
        self._told_pct: int | None = None
        self._level_pct = 0.0
        self._at_s = 0.0

    def with_battery(self, faults: Faults, now_s: float) -> Faults:
        """Return the faults with the battery's current level, and whether it charges."""
        self._set_rooted(faults.rooted)
        if faults.battery_level_pct is None:
            self._told_pct = None
            return faults
        charging = faults.charging
        with suppress(OSError):
            charging = charging and self._suspend.read_text().strip() != "1"
        if faults.battery_level_pct != self._told_pct:
            self._told_pct, self._level_pct = faults.battery_level_pct, float(faults.battery_level_pct)
        else:
            moved = (now_s - self._at_s) * faults.battery_pct_per_s
            self._level_pct += moved if charging else -moved
        self._at_s = now_s
        self._level_pct = min(100.0, max(0.0, self._level_pct))
        return replace(faults, battery_level_pct=round(self._level_pct), charging=charging)

    def _set_rooted(self, rooted: bool) -> None:
        if rooted == self._told_rooted:
            return
        self._told_rooted = rooted
        if rooted:
            self._suspend.parent.mkdir(parents=True, exist_ok=True)
            self._suspend.write_text("0\n")
            self._rooted.touch()
        else:
            self._rooted.unlink(missing_ok=True)
            self._suspend.unlink(missing_ok=True)
