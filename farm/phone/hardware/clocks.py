"""Clocks in sysfs: cpufreq's policies, which cores are online, how busy the GPU is.

Lines are `path:value`, as `grep -H .` prints files; the paths may begin anywhere.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farm.core.base.bounds import MAX_HERTZ
from farm.core.base.cpu_list import core_list
from farm.core.devices.condition import CpuPolicy
from farm.phone.adb.decoding import complete_lines, whole_number

#: Kernels before 4 show a policy only as a folder of each of its cores.
_POLICY_FILE = re.compile(
    r"(?:[^\s:]*/)?(?:(policy\d{1,3})|(cpu\d{1,3})/cpufreq)/((?:stats/)?[\w]+):(.*)", re.ASCII
)
_ONLINE = re.compile(r"(?:[^\s:]*/)?online:(\S+)", re.ASCII)
_STATE_ROW = re.compile(r"(\d{1,9})\s+(\d{1,15})", re.ASCII)
#: The kernel counts time in steps of 10 ms (USER_HZ), whatever its own tick is.
_STEP_MS = 10
_GPU_FILE = re.compile(
    r"(?:[^\s:]*/)?(gpu_busy_percentage|gpu_busy|gpubusy|gpu_utilization|utilisation|utilization"
    r"|dvfs_utilization|load):(.*)",
    re.ASCII,
)
_PERCENT = re.compile(r"\s*(\d{1,3})\s*(?:%|@\d+Hz)?\s*", re.ASCII)
#: MediaTek: busy, waiting for memory, idle.
_BUSY_OF_THREE = re.compile(r"\s*(\d{1,3}) \d{1,3} \d{1,3}\s*", re.ASCII)
_BUSY_OF_TOTAL = re.compile(r"\s*(\d{1,12})\s+(\d{1,12})\s*", re.ASCII)
_BUSY_AND_IDLE = re.compile(r"\s*busy_time:\s*(\d{1,12})\s+idle_time:\s*(\d{1,12}).*", re.ASCII)

_Files = dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks and load; devices hide some or all of it from their shell."""

    cpus: tuple[CpuPolicy, ...] = ()
    #: Cores that are online.
    online: tuple[int, ...] = ()
    gpu_busy_pct: float | None = None


def clocks(text: str) -> Clocks:
    """Parse the lines; others, and a last one that is cut, are skipped."""
    rows = [line.lstrip() for line in complete_lines(text)]
    return Clocks(cpus=_cpu_policies(rows), online=_online(rows), gpu_busy_pct=_gpu_busy_pct(rows))


def _cpu_policies(rows: Iterable[str]) -> tuple[CpuPolicy, ...]:
    by_name: dict[str, _Files] = {}
    for line in rows:
        if match := _POLICY_FILE.fullmatch(line):
            policy, core, file, value = match.groups()
            by_name.setdefault(policy or core, {}).setdefault(file, []).append(value.strip())
    policies = [_policy(name, files) for name, files in by_name.items()]
    by_cores: dict[object, CpuPolicy] = {}
    # A core's folder repeats its policy's; the policy's own name comes before it, then that of its first
    # core.
    for policy in sorted(
        policies, key=lambda candidate: (not candidate.name.startswith("policy"), _number(candidate.name))
    ):
        by_cores.setdefault(policy.cores or policy.name, policy)
    return tuple(sorted(by_cores.values(), key=lambda candidate: (candidate.cores, _number(candidate.name))))


def _policy(name: str, files: _Files) -> CpuPolicy:
    own_core = (_number(name),) if name.startswith("cpu") else ()
    core_lists = (_cores(files, file) for file in ("related_cpus", "affected_cpus"))
    # Some kernels list other cores than its own as related to a core.
    cores = next((listed for listed in core_lists if listed and set(own_core) <= set(listed)), own_core)
    return CpuPolicy(
        name=name.replace("cpu", "policy") if name.startswith("cpu") else name,
        cores=cores,
        governor=_first(files, "scaling_governor"),
        current_hz=_hz(files, "scaling_cur_freq"),
        min_hz=_hz(files, "scaling_min_freq"),
        max_hz=_hz(files, "scaling_max_freq"),
        hardware_min_hz=_hz(files, "cpuinfo_min_freq"),
        hardware_max_hz=_hz(files, "cpuinfo_max_freq"),
        time_in_state_ms=_time_in_state_ms(files.get("stats/time_in_state", [])),
    )


def _time_in_state_ms(rows: Iterable[str]) -> Mapping[int, int]:
    matches = (_STATE_ROW.fullmatch(row) for row in rows)
    return {int(match[1]) * 1000: int(match[2]) * _STEP_MS for match in matches if match}


def _online(rows: Iterable[str]) -> tuple[int, ...]:
    matches = (_ONLINE.fullmatch(line) for line in rows)
    return next((cores for match in matches if match and (cores := core_list(match[1]))), ())


def _gpu_busy_pct(rows: Iterable[str]) -> float | None:
    """Return the first counter with a value: Adreno's (kgsl), Mali's, MediaTek's, a governor's (devfreq)."""
    matches = (_GPU_FILE.fullmatch(line) for line in rows)
    values = (_percentage(match[2]) for match in matches if match)
    return next((value for value in values if value is not None), None)


def _percentage(text: str) -> float | None:
    if match := _PERCENT.fullmatch(text) or _BUSY_OF_THREE.fullmatch(text):
        return float(match[1]) if int(match[1]) <= 100 else None
    if match := _BUSY_AND_IDLE.fullmatch(text):
        return _share_pct(int(match[1]), int(match[1]) + int(match[2]))
    if match := _BUSY_OF_TOTAL.fullmatch(text):
        return _share_pct(int(match[1]), int(match[2]))
    return None


def _share_pct(busy: int, total: int) -> float | None:
    """Return a share in percent; a counter that has not run yet has none."""
    return round(100 * busy / total, 1) if total > 0 and busy <= total else None


def _first(files: _Files, name: str) -> str | None:
    return next((value for value in files.get(name, []) if value), None)


def _hz(files: _Files, name: str) -> int | None:
    kilohertz = whole_number(_first(files, name) or "")
    # A clock that is not there is all ones in some drivers.
    return None if kilohertz is None or not 0 < kilohertz <= MAX_HERTZ // 1000 else kilohertz * 1000


def _cores(files: _Files, name: str) -> tuple[int, ...]:
    return core_list(_first(files, name) or "") or ()


def _number(name: str) -> int:
    return int(name.removeprefix("policy").removeprefix("cpu"))
