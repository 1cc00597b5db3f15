"""The facts of a device, read once in one shell call, and the requirements of every run."""

from collections.abc import Mapping

from agents.adb.client import AdbDevice
from agents.device.conditions import SYS
from farm.core.devices.device import DeviceFacts
from farm.core.errors import DeviceProtocol, DeviceUnfit
from farm.phone.adb.shell_output import output_by_section, section_command
from farm.phone.assemble import device_facts
from farm.phone.identity import facts
from farm.phone.identity.properties import properties

#: Android 8.0, the first with sha256sum.
MIN_API_LEVEL = 26
#: The tools of the supervisor and the cache, beyond shell built-ins.
_TOOLS = ("sha256sum", "setsid", "flock", "timeout", "grep", "env")
#: The time-outs of all commands below that may hang, together.
_DEADLINE_S = 45.0
_ASK = "timeout 5"
_NN = "neuralnetworks"
_VINTF = " ".join(
    f"/{partition}/etc/vintf/{files}"
    for partition in ("vendor", "odm")
    for files in ("*.xml", "manifest/*.xml")
)
_FILES = ("related_cpus", "cpuinfo_min_freq", "cpuinfo_max_freq")
#: With /dev/null as a second file, grep prints file names. Kernels before 4.2 have no policies, only cores.
_CPUFREQ = " || ".join(
    f"(cd {SYS}/devices/system/cpu && grep . /dev/null {' '.join(f'{folder}/{name}' for name in _FILES)})"
    for folder in ("cpufreq/policy*", "cpu[0-9]*/cpufreq")
)
#: Magisk's su accepts -c and may ask on the screen; that of AOSP accepts a user. A virtual phone's user is
#: the host's, which is no root of the phone.
_ROOT = (
    '[ "$(getprop ro.benchfarm.virtual)" = 1 ] || id -u; '
    "if command -v su >/dev/null; then "
    "timeout 3 su -c 'id -u' </dev/null || timeout 3 su 0 id -u </dev/null; fi; echo asked"
)

_COMMANDS = {
    "getprop": "getprop",
    "machine": "uname -m",
    "kernel": "uname -r",
    "kernel_version": "uname -v",
    "system": "uname -s",
    "cpuinfo": "cat /proc/cpuinfo",
    "possible": f"cat {SYS}/devices/system/cpu/possible",
    "cpufreq": _CPUFREQ,
    "soc_machine": f"cat {SYS}/devices/soc0/machine",
    "nproc": "nproc",
    "meminfo": "cat /proc/meminfo",
    "gles": f"{_ASK} dumpsys SurfaceFlinger | grep GLES:",
    "vkjson": f"{_ASK} cmd gpu vkjson | grep -E '\"(apiVersion|driverVersion|driverInfo|deviceName)\"'",
    "features": f"{_ASK} cmd package list features | grep vulkan.version",
    "services": f"{_ASK} service list | grep {_NN}",
    "lshal": f"if command -v lshal; then {_ASK} lshal 2>&1; fi | grep {_NN}",
    "vintf": f'for f in {_VINTF}; do grep -q {_NN} "$f" && cat "$f"; done',
    "thermal_hal": f"{_ASK} dumpsys thermalservice | grep ThermalHAL",
    "root": _ROOT,
    # The first writable folder; a virtual phone names its own.
    "work_root": 'for d in "$(getprop ro.benchfarm.work_root)" /data/local/tmp "$TMPDIR" /tmp; do '
    'if [ -d "$d" ] && [ -w "$d" ]; then echo "$d"; break; fi; done',
    "storage": 'df -k "$d"',
    "missing": f"for t in {' '.join(_TOOLS)}; do command -v $t >/dev/null || echo $t; done; echo checked",
    # The supervisor waits for the process itself, so that setsid must not fork.
    "setsid": "setsid sh -c 'echo $$' & echo $!; wait",
}
FACTS_COMMAND = section_command(_COMMANDS)


async def read_facts(device: AdbDevice) -> DeviceFacts:
    """Read the facts of a device, and give it its work root.

    An unknown fact is None; a device side that is not Android reports few.

    Raises:
        DeviceUnfit: it can run nothing: too old an Android, a tool missing, nowhere to write.
        DeviceError: the device went away, was too slow, or cut its answer short.
    """
    result = await device.shell(FACTS_COMMAND, deadline_s=_DEADLINE_S)
    sections = output_by_section(result.text)
    if lost := _COMMANDS.keys() - sections.keys():
        raise DeviceProtocol(f"{device.serial} cut its facts short: {', '.join(sorted(lost))}")
    if reason := find_unsupported_reason(sections):
        raise DeviceUnfit(f"{device.serial} {reason}")
    facts_read = device_facts(sections, device.serial)
    device.work_root = facts_read.work_root
    return facts_read


def find_unsupported_reason(sections: Mapping[str, str]) -> str | None:
    """Return why the device can run nothing, by the output of FACTS_COMMAND; None when it can."""
    level = facts.api_level(properties(sections.get("getprop", "")))
    missing = [word for word in sections.get("missing", "").split() if word != "checked"]
    if level is not None and level < MIN_API_LEVEL:
        return f"runs Android API level {level}; {MIN_API_LEVEL} (Android 8.0) is the least"
    if missing:
        return f"has no {', '.join(missing)}"
    if not sections.get("work_root", "").startswith("/"):
        return "has no folder that its shell may write to"
    if len(set(sections.get("setsid", "").split())) != 1:
        return "has a setsid that forks, so that exit codes would be lost"
    return None
