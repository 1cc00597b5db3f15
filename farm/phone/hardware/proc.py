"""Files of /proc: memory, load, uptime, cores."""

import re

from farm.phone.adb.decoding import decimal_number, first_match, lines, whole_number

_MEMORY = re.compile(r"\s*(\w+):\s*(\d{1,15}) kB", re.ASCII)
_LOAD = re.compile(r"\s*(\d{1,9}\.\d+) \d+\.\d+ \d+\.\d+ \d+/\d+ \d+", re.ASCII)
_UPTIME = re.compile(r"\s*(\d{1,12}\.\d+) \d+\.\d+", re.ASCII)


def memory_bytes(text: str, field: str) -> int | None:
    """Return a field of /proc/meminfo, e.g. `MemTotal` or `MemAvailable`."""
    matches = (_MEMORY.fullmatch(line) for line in lines(text))
    kilobytes = next((int(match[2]) for match in matches if match and match[1] == field), None)
    return None if kilobytes is None else kilobytes * 1024


def load_1m(text: str) -> float | None:
    """Return the first number of /proc/loadavg: runnable and blocked tasks over a minute."""
    return _first_number(_LOAD, text)


def uptime_s(text: str) -> float | None:
    """Return the first number of /proc/uptime: seconds since the boot, suspension included."""
    return _first_number(_UPTIME, text)


def core_count_of_nproc(text: str) -> int | None:
    """Return the number that `nproc` prints, where /proc/cpuinfo cannot be read."""
    numbers = [whole_number(line) for line in lines(text) if line]
    return numbers[0] if len(numbers) == 1 and numbers[0] else None


def _first_number(pattern: re.Pattern[str], text: str) -> float | None:
    match = first_match(pattern, lines(text))
    return None if match is None else decimal_number(match[1])
