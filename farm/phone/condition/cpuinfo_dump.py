"""Recent CPU usage: the table of `dumpsys cpuinfo` (AOSP: ProcessCpuTracker.printCurrentState)."""

import re
from dataclasses import dataclass

from farm.phone.adb.decoding import table_lines

#: Anything may stand before it: logcat's columns, where the table is part of an ANR report.
_ROW = re.compile(r"(?:.*?\s)?[+-]?(\d{1,4}(?:\.\d{1,3})?)% (\d{1,9})/(.+?): \d.*(?:user|kernel).*", re.ASCII)
_TOTAL = re.compile(r"(?:.*?\s)?(\d{1,4}(?:\.\d{1,3})?)% TOTAL\b.*", re.ASCII)
_HEADING = re.compile(r"(?:.*?\s)?CPU usage from \d.*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCpuLoad:
    """The load of one process; 100 % is one core."""

    pid: int
    name: str
    busy_pct: float


def cpu_load(text: str) -> tuple[ProcessCpuLoad, ...]:
    """Return the processes of the first table, highest load first; a table that was cut has fewer.

    ANR reports have a table from before and one from after.
    """
    table = _first_table(table_lines(text))
    rows = [match for line in table if (match := _ROW.fullmatch(line))]
    # A process' threads stand below it, indented by two more blanks.
    column = min((row.start(1) for row in rows), default=0)
    rows = [row for row in rows if row.start(1) < column + 2]
    users = [ProcessCpuLoad(pid=int(row[2]), name=row[3], busy_pct=float(row[1])) for row in rows]
    return tuple(sorted(users, key=lambda user: (-user.busy_pct, user.pid)))


def _first_table(table: list[str]) -> list[str]:
    """Return the lines up to the total, or else up to the next table's heading."""
    ends = [number for number, line in enumerate(table, start=1) if _TOTAL.fullmatch(line)]
    headings = [number for number, line in enumerate(table) if _HEADING.fullmatch(line)]
    return table[: min([*ends[:1], *headings[1:2]], default=len(table))]
