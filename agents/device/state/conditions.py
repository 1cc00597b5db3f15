"""The condition of a device, read in one shell call."""

from collections.abc import Mapping
from datetime import datetime
from shlex import quote

from agents.adb.client import AdbDevice
from farm.core.devices.condition import Condition
from farm.phone.adb.shell_sections import output_by_section, section_command
from farm.phone.condition.battery import battery_status
from farm.phone.condition.clocks import clocks
from farm.phone.condition.cpuinfo_dump import cpu_load
from farm.phone.condition.screen import screen_on, stay_awake
from farm.phone.condition.thermal import thermal
from farm.phone.condition.thermal_limits import skin_limit_c
from farm.phone.hardware.proc import load_1m, memory_bytes, uptime_s
from farm.phone.hardware.storage import storage_free_bytes

_DEADLINE_S = 20.0
#: The path of the boot id, for the device's shell: a virtual phone sets its own.
BOOT_ID = '"${BENCHFARM_BOOT_ID:-/proc/sys/kernel/random/boot_id}"'
#: Where the shell can read a file itself, no process is started: processes are the cost of a reading.
_MEMORY = (
    'while read -r line; do case $line in MemAvailable:*) echo "$line"; break ;; esac; done </proc/meminfo'
)
#: The lines of `dumpsys power` about the screen.
SCREEN_LINES = "akefulness(Locked\\(\\))?=|Display Power"
#: The path of sysfs; a virtual phone sets its own.
SYS = '"${BENCHFARM_SYS:-/sys}"'
#: One process for all files: the shell would read them a byte at a time, and each read calls the driver
#: again. Kernels before 4 have no policy folders, but one in each core's folder.
_CLOCKS = (
    # Return to the previous folder: a subshell would be one more process.
    f"d=$PWD; cd {SYS}/devices/system/cpu && "
    "{ [ -e cpufreq/policy0 ] && p='cpufreq/policy*' || p='cpu[0-9]*/cpufreq'; "
    "grep -H . online $p/related_cpus $p/scaling_governor $p/scaling_cur_freq $p/scaling_m??_freq "
    f"$p/cpuinfo_m??_freq $p/stats/time_in_state {SYS}/class/kgsl/kgsl-3d0/gpu_busy_percentage "
    f"{SYS}/kernel/gpu/gpu_busy {SYS}/kernel/ged/hal/gpu_utilization {SYS}/class/misc/mali0/device/*util* "
    f'{SYS}/class/devfreq/*gpu*/load {SYS}/class/devfreq/*mali*/load; }}; cd "$d"'
)
#: These tables are slow to produce: they are read only where the one-minute load has two digits.
_BUSIEST = (
    "read -r load rest </proc/loadavg; case ${load%%.*} in ?) ;; *) dumpsys cpuinfo | head -n 8 ;; esac"
)
_BUSIEST_NAMED = 3


async def read_condition(device: AdbDevice, work_root: str, now: datetime) -> Condition:
    """Read the condition once; `now` is its time stamp.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    result = await device.shell(section_command(condition_commands(work_root)), deadline_s=_DEADLINE_S)
    return condition(output_by_section(result.stdout.decode(errors="replace")), now)


async def read_boot_id(device: AdbDevice) -> str | None:
    """Return the boot id; None when the device does not report it.

    Raises:
        DeviceError: the device went away, or was too slow.
    """
    result = await device.shell(_first_line(BOOT_ID), deadline_s=_DEADLINE_S)
    return result.stdout.decode(errors="replace").strip() or None


def condition_commands(work_root: str) -> dict[str, str]:
    """Return the commands that read the condition, by section."""
    return {
        "thermal": "dumpsys thermalservice",
        "battery": "dumpsys battery",
        # The dump has several hundred lines.
        "power": f"dumpsys power | grep -E '{SCREEN_LINES}|mStayOnWhilePluggedInSetting='",
        "clocks": _CLOCKS,
        "boot_id": _first_line(BOOT_ID),
        "uptime": _first_line("/proc/uptime"),
        "load": _first_line("/proc/loadavg"),
        "busiest": _BUSIEST,
        "memory": _MEMORY,
        "storage": f"df -k {quote(work_root)}",
    }


def condition(sections: Mapping[str, str], now: datetime) -> Condition:
    """Parse the output of `condition_commands`; `now` is the time stamp of the condition."""
    heat, power = thermal(sections.get("thermal", "")), battery_status(sections.get("battery", ""))
    cpu, busiest = clocks(sections.get("clocks", "")), cpu_load(sections.get("busiest", "")).users
    return Condition(
        taken_at=now,
        boot_id=sections.get("boot_id", "").strip() or None,
        uptime_s=uptime_s(sections.get("uptime", "")),
        thermal_status=heat.status,
        skin_c=heat.skin_c,
        skin_limit_c=skin_limit_c(sections.get("thermal", "")),
        temperatures_c=heat.temperatures_c,
        battery_level_pct=power.level_pct,
        battery_c=power.temperature_c,
        charging=power.charging,
        plugged=power.plugged,
        screen_on=screen_on(sections.get("power", "")),
        stay_awake=stay_awake(sections.get("power", "")),
        load_1m=load_1m(sections.get("load", "")),
        memory_available_bytes=memory_bytes(sections.get("memory", ""), "MemAvailable"),
        storage_free_bytes=storage_free_bytes(sections.get("storage", "")),
        cpus=cpu.cpus,
        online_cores=cpu.online,
        gpu_busy_pct=cpu.gpu_busy_pct,
        busiest_pct={user.name: user.busy_pct for user in busiest[:_BUSIEST_NAMED]},
    )


def _first_line(path: str) -> str:
    return f'read -r line <{path} && echo "$line"'
