"""The condition of a device, read in one shell call, and the preflight of a run: what stays valid of both.

A preflight is the condition with the state of the cached files.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import cache_folder
from farm.core.base.ids import Digest
from farm.core.devices.condition import Condition
from farm.core.devices.controls import Screen
from farm.core.devices.screen_state import ScreenState
from farm.core.errors import DeviceTimeout
from farm.core.runs.plan import PlanFile
from farm.phone.adb.decoding import lines
from farm.phone.condition.battery import battery_status
from farm.phone.condition.cpuinfo_dump import cpu_load
from farm.phone.condition.energy_rails import RAILS_SERVICE
from farm.phone.condition.screen import screen_on, stay_awake
from farm.phone.condition.thermal import skin_limit_c, thermal
from farm.phone.hardware.clocks import clocks
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


async def read_condition(device: AdbDevice, now: datetime) -> Condition:
    """Read the condition once; `now` is its time stamp."""
    return condition(await device.read_sections(condition_commands(device.work_root), _DEADLINE_S), now)


async def read_rails(device: AdbDevice) -> str:
    """Return the meters of the power rails with the uptime at that moment; empty where there are none.

    Never during a run: the service wakes the meters, and answers on the device's CPU.
    """
    command = (
        'read -r up rest </proc/uptime && echo "uptime $up"; '
        f"dumpsys {RAILS_SERVICE} 2>/dev/null | sed -n '/HAL 2.0 energy meter =/,/End of/p'"
    )
    try:
        result = await device.shell(command, deadline_s=_DEADLINE_S)
    except DeviceTimeout:
        return ""
    return result.text


async def read_boot_id(device: AdbDevice) -> str | None:
    """Return the boot id; None when the device does not report it."""
    result = await device.shell(_first_line(BOOT_ID), deadline_s=_DEADLINE_S)
    return result.text.strip() or None


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
    cpu, busiest = clocks(sections.get("clocks", "")), cpu_load(sections.get("busiest", ""))
    return Condition(
        taken_at=now,
        boot_id=sections.get("boot_id", "").strip() or None,
        uptime_s=uptime_s(sections.get("uptime", "")),
        thermal_status=heat.status,
        skin_c=heat.skin_c,
        skin_limit_c=skin_limit_c(sections.get("thermal", "")),
        temperatures_c=heat.temperatures_c,
        cooling=heat.cooling,
        battery_level_pct=power.level_pct,
        battery_c=power.temperature_c,
        battery_v=power.voltage_v,
        battery_health=power.health,
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


#: Lines of `sha256sum` in the same output do not begin with an inode.
_ROW = re.compile(r"(\d{1,20} \d{1,20} [0-7]{3,4} .+) ([0-9a-f]{64})", re.ASCII)
#: Inode, size, mode, modification and change time, which the kernel sets at every change. For `stat -c`.
STATE_FORMAT = "%i %s %a %y %z %n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The state of a device at one moment."""

    condition: Condition
    #: The state of each cached file; while it is the same, the file is unchanged.
    state_by_digest: Mapping[Digest, str]


async def read_preflight(device: AdbDevice, now: datetime) -> Preflight:
    """Read the preflight once; `now` is the time stamp of the condition."""
    commands = {"cached": cached_command(device.work_root), **condition_commands(device.work_root)}
    sections = await device.read_sections(commands, _DEADLINE_S)
    return Preflight(
        condition=condition(sections, now),
        state_by_digest=state_by_digest(sections.get("cached", "")),
    )


def cached_command(work_root: str) -> str:
    """Return the command that prints the state of cached files, for `state_by_digest`."""
    return f"cd {quote(cache_folder(work_root))} && stat -c '{STATE_FORMAT}' *"


def state_by_digest(text: str) -> dict[Digest, str]:
    """Parse the state of files from the output of `stat` on a cache; other names are dropped."""
    rows = (_ROW.fullmatch(line) for line in lines(text))
    return {Digest(row[2]): row[1] for row in rows if row}


#: After this a file's digest is computed again, even if its state is unchanged.
VERIFIED_FOR_S = 3600.0
#: The age up to which a preflight serves the next run.
PREFLIGHT_MAX_AGE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """A file whose digest was computed on the device."""

    #: Its state just before that: inode, size, mode, times.
    state: str
    at_s: float


@dataclass(slots=True, kw_only=True)
class DeviceStateCache:
    """The cached state of one device; created again after every change of its transport or new probe.

    Times are on the agent's monotonic clock.
    """

    verified_by_digest: dict[Digest, VerifiedFile] = field(default_factory=dict)
    #: The stay-awake and screen settings that were set last and not restored.
    lasting_controls: tuple[bool, Screen] | None = None
    #: The screen state before that.
    screen_found: ScreenState = field(default_factory=ScreenState)
    #: Held during a preflight, so that none is taken on a device that has begun to measure.
    preflight_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Held while the screen's setting changes.
    screen: asyncio.Lock = field(default_factory=asyncio.Lock)
    _fence_by_digest: dict[Digest, int] = field(default_factory=dict)
    _preflight: Preflight | None = None
    _preflight_at_s: float = 0.0
    #: The condition right after the last run.
    _after: Condition | None = None
    _after_at_s: float = 0.0

    @property
    def is_awake(self) -> bool:
        """Return whether its screen, or its setting, was changed by us and not restored."""
        return self.lasting_controls is not None

    def record_verified(self, state_by_digest: Mapping[Digest, str], at_s: float) -> None:
        """Record files whose digests were right."""
        for digest, state in state_by_digest.items():
            if state:
                self.verified_by_digest[digest] = VerifiedFile(state=state, at_s=at_s)

    def holds_files(self, files: Iterable[PlanFile], preflight: Preflight, now_s: float) -> bool:
        """Return whether every file is unchanged since its digest was computed, not long ago."""
        for file in files:
            verified = self.verified_by_digest.get(file.digest)
            state = preflight.state_by_digest.get(file.digest)
            if verified is None or state != verified.state or now_s - verified.at_s > VERIFIED_FOR_S:
                return False
            # By the bit that lets its owner run it.
            if file.executable and not int(state.split(" ")[2], 8) & 0o100:
                return False
        return True

    def store_preflight(self, preflight: Preflight, at_s: float) -> None:
        """Store a preflight for the next run."""
        self._preflight, self._preflight_at_s = preflight, at_s

    def record_after_run(self, condition: Condition | None, at_s: float) -> None:
        """Store the condition right after a run, until the run has been cleaned up."""
        self._after, self._after_at_s = condition, at_s

    def forget_after_run(self) -> None:
        """Forget the condition after the run: something ran since."""
        self._after = None

    def record_cleaned(self, state_by_digest: Mapping[Digest, str]) -> None:
        """Record the cache after a clean-up; with the condition after the run, it is a preflight."""
        if (after := self._after) is not None:
            self._after = None
            self.store_preflight(
                Preflight(condition=after, state_by_digest=state_by_digest), self._after_at_s
            )

    def record_use(self, files: Iterable[PlanFile], fence: int) -> None:
        """Record that a run uses these files, without touching them."""
        for file in files:
            self._fence_by_digest[file.digest] = fence

    def take_recorded_uses(self) -> dict[int, list[Digest]]:
        """Return and forget the recorded uses by fence; the caller touches the files on the device."""
        uses: dict[int, list[Digest]] = {}
        for digest, fence in self._fence_by_digest.items():
            uses.setdefault(fence, []).append(digest)
            self.verified_by_digest.pop(digest, None)
        self._fence_by_digest.clear()
        return uses

    def find_preflight(self, now_s: float) -> Preflight | None:
        """Return the stored preflight, while it is recent."""
        return self._preflight if now_s - self._preflight_at_s <= PREFLIGHT_MAX_AGE_S else None

    def take_preflight(self, now_s: float) -> Preflight | None:
        """Return and forget the stored preflight."""
        preflight, self._preflight = self.find_preflight(now_s), None
        return preflight

    def forget(self) -> None:
        """Forget everything: something went wrong on the device."""
        self.verified_by_digest.clear()
        self.lasting_controls, self._preflight, self._after = None, None, None
