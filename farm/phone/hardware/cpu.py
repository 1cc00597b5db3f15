"""Cores in /proc/cpuinfo, and the groups that change their clock together (sysfs cpufreq)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby

from farm.core.base.cpu_list import core_list
from farm.core.devices.device import Cluster
from farm.phone.adb.decoding import complete_lines, lines
from farm.phone.hardware.clocks import clocks
from farm.phone.identity.soc_table import entries

_FIELD = re.compile(r"\s*([A-Za-z][\w ]*?)\s*:\s*(.*)")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,8}", re.ASCII)
_CORE = re.compile(r"\d{1,4}", re.ASCII)
#: Cores by the implementer's number, and by the part's: MIDR_EL1 (arch/arm64/include/asm/cputype.h, manuals).
_CORES_BY_IMPLEMENTER = {
    # Arm.
    0x41: """
    C05 Cortex-A5; C07 Cortex-A7; C08 Cortex-A8; C09 Cortex-A9; C0D Cortex-A12; C0E Cortex-A17; C0F Cortex-A15
    D01 Cortex-A32; D02 Cortex-A34; D03 Cortex-A53; D04 Cortex-A35; D05 Cortex-A55; D06 Cortex-A65
    D07 Cortex-A57; D08 Cortex-A72; D09 Cortex-A73; D0A Cortex-A75; D0B Cortex-A76; D0C Neoverse-N1
    D0D Cortex-A77; D0E Cortex-A76AE; D40 Neoverse-V1; D41 Cortex-A78; D42 Cortex-A78AE; D43 Cortex-A65AE
    D44 Cortex-X1; D46 Cortex-A510; D47 Cortex-A710; D48 Cortex-X2; D49 Neoverse-N2; D4A Neoverse-E1
    D4B Cortex-A78C; D4C Cortex-X1C; D4D Cortex-A715; D4E Cortex-X3; D4F Neoverse-V2; D80 Cortex-A520
    D81 Cortex-A720; D82 Cortex-X4; D85 Cortex-X925; D87 Cortex-A725; D88 Cortex-A520AE; D89 Cortex-A720AE
    D8A C1-Nano; D8B C1-Pro; D8C C1-Ultra; D8F Cortex-A320; D90 C1-Premium
    """,
    # HiSilicon, NVIDIA, Qualcomm, Samsung.
    0x48: "D01 TaiShan v110; D02 TaiShan v120; D40 Cortex-A76; D41 Cortex-A77",
    0x4E: "000 Denver; 003 Denver 2; 004 Carmel",
    0x51: """
    001 Oryon; 002 Oryon; 00F Scorpion; 02D Scorpion; 04D Krait; 06F Krait; 201 Kryo Silver; 205 Kryo Gold
    211 Kryo Silver; 800 Kryo 2xx Gold; 801 Kryo 2xx Silver; 802 Kryo 3xx Gold; 803 Kryo 3xx Silver
    804 Kryo 4xx Gold; 805 Kryo 4xx Silver
    """,
    0x53: "001 Exynos M1/M2; 002 Exynos M3; 003 Exynos M4; 004 Exynos M5",
}
_CORE_NAMES = {
    (implementer, int(part, 16)): name
    for implementer, table in _CORES_BY_IMPLEMENTER.items()
    for part, name in entries(table)
}


def hardware_line(cpuinfo: str) -> str | None:
    """Return the `Hardware` line, where some kernels name the chip: `Qualcomm Technologies, Inc SM8350`."""
    # It is the last line of some kernels, and captures often lack its line end, so it counts without one.
    values = [match[2].strip() for match in _fields(lines(cpuinfo)) if match[1] == "Hardware"]
    return next((value for value in reversed(values) if value), None)


def core_by_number(cpuinfo: str) -> dict[int, str]:
    """Return the kind of each listed core: its name, or its two numbers where that is unknown: `0x41:0xd05`.

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
    groups = [
        Cluster(
            cores=policy.cores,
            core=" + ".join(dict.fromkeys(kinds[core] for core in policy.cores if core in kinds)) or None,
            min_hz=policy.hardware_min_hz,
            max_hz=policy.hardware_max_hz,
        )
        for policy in clocks(cpufreq).cpus
        if policy.cores
    ]
    if not groups:
        runs = groupby(sorted(kinds), key=lambda core: kinds[core])
        groups = [Cluster(cores=tuple(cores), core=kind) for kind, cores in runs]
    return tuple(sorted(groups, key=lambda cluster: (cluster.max_hz or 0, cluster.cores)))


def possible_cores(text: str) -> int | None:
    """Return the number of /sys/devices/system/cpu/possible, which includes cores that are switched off."""
    listed = (core_list(line) for line in complete_lines(text))
    return next((len(cores) for cores in listed if cores), None)


def _kind(fields: Mapping[str, str]) -> str | None:
    numbers = fields.get("CPU implementer", ""), fields.get("CPU part", "")
    if all(map(_HEX.fullmatch, numbers)):
        implementer, part = (int(number, 16) for number in numbers)
        return _CORE_NAMES.get((implementer, part)) or f"0x{implementer:02x}:0x{part:03x}"
    return fields.get("model name") if "vendor_id" in fields else None


def _fields(rows: Iterable[str]) -> list[re.Match[str]]:
    return [match for line in rows if (match := _FIELD.fullmatch(line))]
