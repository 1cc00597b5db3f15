"""Cores in /proc/cpuinfo, and the groups that change their clock together (sysfs cpufreq)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby

from farm.core.base.cpu_list import core_list
from farm.core.devices.hardware import Cluster
from farm.phone.adb.decoding import complete_lines, lines
from farm.phone.hardware.core_table import core_name

_FIELD = re.compile(r"\s*([A-Za-z][\w ]*?)\s*:\s*(.*)")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}", re.ASCII)
_CORE = re.compile(r"\d{1,4}", re.ASCII)
#: Output of `grep` over several files, on policies or on cores: `policy4/related_cpus:4 5 6`,
#: `.../cpu4/cpufreq/...`.
_SYSFS = re.compile(
    r"\s*(?:\S*/)?(policy\d{1,4}|cpu\d{1,4}/cpufreq)/"
    r"(related_cpus|affected_cpus|cpuinfo_min_freq|cpuinfo_max_freq)\s*:\s*([\d ,-]{1,200})",
    re.ASCII,
)
_MAX_KHZ = 100_000_000


def hardware_line(cpuinfo: str) -> str | None:
    """Return the `Hardware` line, where some kernels name the chip: `Qualcomm Technologies, Inc SM8350`."""
    # It is the last line of some kernels, and captures often lack its line end, so it counts without one.
    values = [match[2].strip() for match in _fields(lines(cpuinfo)) if match[1] == "Hardware"]
    return next((value for value in reversed(values) if value), None)


def core_by_number(cpuinfo: str) -> dict[int, str]:
    """Return the kind of each listed core: its name, or implementer and part where that is unknown.

    Kernels of 32 bits before 3.8 describe all cores once, behind the last one. On x86 it is the model's name.
    """
    fields_by_core: dict[int | None, dict[str, str]] = defaultdict(dict)
    number: int | None = None
    for match in _fields(complete_lines(cpuinfo)):
        key, value = match[1], match[2].strip()
        if key == "processor" and _CORE.fullmatch(value):
            number = int(value)
            fields_by_core[number] = {}
        elif key not in fields_by_core[number]:
            fields_by_core[number][key] = value
    numbered = {core: fields for core, fields in fields_by_core.items() if core is not None}
    described = [core for core, fields in numbered.items() if "CPU part" in fields]
    shared = numbered[described[0]] if described and described == list(numbered)[-1:] else {}
    kinds = {core: _kind(fields) or _kind(shared) for core, fields in numbered.items()}
    return {core: kind for core, kind in kinds.items() if kind is not None}


def clusters(cpufreq: str, cpuinfo: str) -> tuple[Cluster, ...]:
    """Return the cores that change their clock together, slowest first; without cpufreq by the kind of core.

    Args:
        cpufreq: files of sysfs, each line with its path before it, as `grep` prints several files.
        cpuinfo: the text of /proc/cpuinfo.
    """
    kinds = core_by_number(cpuinfo)
    groups = _policies(cpufreq, kinds) or _clusters_by_kind(kinds)
    return tuple(sorted(groups, key=lambda cluster: (cluster.max_hz or 0, cluster.cores)))


def possible_cores(text: str) -> int | None:
    """Return the number of /sys/devices/system/cpu/possible, which includes cores that are switched off."""
    listed = (core_list(line) for line in complete_lines(text))
    return next((len(cores) for cores in listed if cores), None)


def _policies(cpufreq: str, kinds: Mapping[int, str]) -> list[Cluster]:
    files_by_policy: dict[str, dict[str, str]] = defaultdict(dict)
    for line in complete_lines(cpufreq):
        if (match := _SYSFS.fullmatch(line)) is not None:
            files_by_policy[match[1]].setdefault(match[2], match[3])
    cluster_by_cores: dict[tuple[int, ...], Cluster] = {}
    for policy, files in files_by_policy.items():
        cores = _cores_of(policy, files)
        if cores and cores not in cluster_by_cores:
            cluster_by_cores[cores] = Cluster(
                cores=cores,
                core=_joined_kinds(kinds[core] for core in cores if core in kinds),
                min_hz=_hertz(files.get("cpuinfo_min_freq")),
                max_hz=_hertz(files.get("cpuinfo_max_freq")),
            )
    return list(cluster_by_cores.values())


def _cores_of(policy: str, files: Mapping[str, str]) -> tuple[int, ...]:
    """Return the cores of a policy, or of a core's folder; some kernels list unrelated cores."""
    own_core = (
        (int(policy.removeprefix("cpu").removesuffix("/cpufreq")),) if policy.endswith("/cpufreq") else ()
    )
    core_lists = (core_list(files.get(name, "")) or () for name in ("related_cpus", "affected_cpus"))
    return next((cores for cores in core_lists if cores and set(own_core) <= set(cores)), own_core)


def _clusters_by_kind(kinds: Mapping[int, str]) -> list[Cluster]:
    runs = groupby(sorted(kinds), key=lambda core: kinds[core])
    return [Cluster(cores=tuple(cores), core=kind) for kind, cores in runs]


def _joined_kinds(kinds: Iterable[str]) -> str | None:
    return " + ".join(dict.fromkeys(kinds)) or None


def _hertz(text: str | None) -> int | None:
    """Convert cpufreq's kilohertz to hertz."""
    digits = (text or "").strip()
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 12
    return int(digits) * 1000 if is_number and 0 < int(digits) <= _MAX_KHZ else None


def _kind(fields: Mapping[str, str]) -> str | None:
    implementer, part = fields.get("CPU implementer", ""), fields.get("CPU part", "")
    if _HEX.fullmatch(implementer) and _HEX.fullmatch(part):
        return core_name(int(implementer, 16), int(part, 16))
    return fields.get("model name") if "vendor_id" in fields else None


def _fields(rows: Iterable[str]) -> list[re.Match[str]]:
    return [match for line in rows if (match := _FIELD.fullmatch(line))]
