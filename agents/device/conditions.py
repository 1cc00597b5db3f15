"""What a phone is like now, in one shell call."""

from datetime import datetime
from shlex import quote

from agents.adb.client import AdbDevice
from farm.core.condition import Condition
from farm.phone.battery import battery
from farm.phone.proc import load_1m, memory_bytes, uptime_s
from farm.phone.sections import output_by_section, section_command
from farm.phone.storage import storage_free_bytes
from farm.phone.thermal import thermal

_DEADLINE_S = 20.0


async def read_condition(device: AdbDevice, work_root: str, now: datetime) -> Condition:
    """Look at the phone once. `now` is what the condition is dated with.

    Raises:
        DeviceError: the phone went away, or was too slow.
    """
    command = section_command(
        {
            "boot_id": "cat /proc/sys/kernel/random/boot_id",
            "uptime": "cat /proc/uptime",
            "thermal": "dumpsys thermalservice",
            "battery": "dumpsys battery",
            "load": "cat /proc/loadavg",
            "memory": "cat /proc/meminfo",
            "storage": f"df -k {quote(work_root)}",
        }
    )
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    return _condition(output_by_section(result.stdout.decode(errors="replace")), now)


def _condition(said: dict[str, str], now: datetime) -> Condition:
    heat, power = thermal(said.get("thermal", "")), battery(said.get("battery", ""))
    return Condition(
        taken_at=now,
        boot_id=said.get("boot_id", "").strip() or None,
        uptime_s=uptime_s(said.get("uptime", "")),
        thermal_status=heat.status,
        skin_c=heat.skin_c,
        temperatures_c=heat.temperatures_c,
        battery_level_pct=power.level_pct,
        battery_c=power.temperature_c,
        charging=power.charging,
        load_1m=load_1m(said.get("load", "")),
        memory_available_bytes=memory_bytes(said.get("memory", ""), "MemAvailable"),
        storage_free_bytes=storage_free_bytes(said.get("storage", "")),
    )
