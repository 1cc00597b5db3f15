"""Who used the CPU lately: the table of `dumpsys cpuinfo` (AOSP: ProcessCpuTracker.printCurrentState)."""

import re
from dataclasses import dataclass

from farm.phone.text import lines

#: Anything may stand before: logcat's columns, where the table is part of a report that an app hangs.
_ROW = re.compile(r"(?:.*?\s)?\+?(\d{1,4}(?:\.\d{1,3})?)% (\d{1,9})/(.+?): \d.*(?:user|kernel).*", re.ASCII)
_TOTAL = re.compile(r"(?:.*?\s)?(\d{1,4}(?:\.\d{1,3})?)% TOTAL\b.*", re.ASCII)
_LOAD = re.compile(r"(?:.*\s)?Load: (\d{1,6}(?:\.\d{1,3})?) / \S+ / \S+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUser:
    """One process; 100 % is one core."""

    pid: int
    name: str
    busy_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUse:
    """Over the last while; None where the table does not say, or was cut."""

    load_1m: float | None = None
    #: Most first, whatever order they were listed in.
    users: tuple[CpuUser, ...] = ()
    #: Of all cores together.
    total_pct: float | None = None


def cpu_use(text: str) -> CpuUse:
    """The first table in the text."""
    said = lines(text)
    rows = [match for line in said if (match := _ROW.fullmatch(line))]
    users = [CpuUser(pid=int(row[2]), name=row[3], busy_pct=float(row[1])) for row in rows]
    return CpuUse(
        load_1m=_first(_LOAD, said),
        users=tuple(sorted(users, key=lambda user: (-user.busy_pct, user.pid))),
        total_pct=_first(_TOTAL, said),
    )


def _first(pattern: re.Pattern[str], said: list[str]) -> float | None:
    found = (pattern.fullmatch(line) for line in said)
    return next((float(match[1]) for match in found if match), None)
