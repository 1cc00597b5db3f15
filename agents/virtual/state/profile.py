"""The profile of a virtual phone: facts of this machine in Android's formats."""

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from agents.virtual.state.faults import Faults

_ABI_BY_MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64-v8a", "arm64": "arm64-v8a"}
#: The shell and dumpsys formats are those of Android 14; it does not claim to be a release of Android.
API_LEVEL = 34
RELEASE = "virtual"
#: AOSP: temperature.aidl, TemperatureType.SKIN.
_SKIN = 3


def properties(serial: str, work_root: Path, cpuinfo: str, cpu_domain: str | None) -> dict[str, str]:
    """Return the system properties; `cpuinfo` is the text of /proc/cpuinfo."""
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
        "ro.build.fingerprint": fingerprint(machine),
        "ro.benchfarm.virtual": "1",
        **({"ro.benchfarm.cpu_domain": cpu_domain} if cpu_domain else {}),
        "ro.benchfarm.work_root": str(work_root),
        "sys.boot_completed": "1",
    }


def fingerprint(machine: str) -> str:
    """Return the versions that results may depend on: the project, the interpreter and torch."""
    interpreter = f"python-{platform.python_version()}"
    return f"benchfarm/virtual/{machine}:{_version('benchfarm')}/{interpreter}/torch-{_version('torch')}"


#: Vendors of x86 CPUs by their CPUID names.
_MAKER_BY_VENDOR_ID = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}


def host_soc(cpuinfo: str) -> tuple[str, str]:
    """Return manufacturer and model of the CPU. Kernels for ARM report numbers only."""
    values = _cpu_values(cpuinfo)
    if "model name" in values:
        vendor = values.get("vendor_id", "unknown")
        return _MAKER_BY_VENDOR_ID.get(vendor, vendor), values["model name"]
    part = f"{values.get('CPU implementer', '?')}:{values.get('CPU part', '?')}"
    return "unknown", values.get("Hardware", f"CPU {part}")


def _cpu_values(cpuinfo: str) -> dict[str, str]:
    rows = (line.partition(":") for line in cpuinfo.splitlines())
    return {name.strip(): value.strip() for name, colon, value in rows if colon and value.strip()}


def cpu_domain() -> str:
    """Return an id shared by all phones on one CPU: containers share a kernel, hence its boot id."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"cpu of {boot_id}".encode()).hexdigest()[:16]


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
