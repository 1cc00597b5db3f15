"""Lists of cores as the kernel and taskset write them: `0-3,7`."""

import re
from collections.abc import Iterable

#: More than any phone has; keeps a slip from making a list of a million.
MAX_CORES = 256
_RANGE = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?", re.ASCII)


def core_list(text: str) -> tuple[int, ...] | None:
    """Parse a kernel CPU list, ascending; None when it lists no core. Some files separate cores by blanks."""
    cores: set[int] = set()
    for part in text.replace(",", " ").split():
        if (match := _RANGE.fullmatch(part)) is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < MAX_CORES:
            return None
        cores.update(range(first, last + 1))
    return tuple(sorted(cores)) or None


def core_text(cores: Iterable[int]) -> str:
    """Format cores as a kernel CPU list: `0-3,7`."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def core_mask(cores: Iterable[int]) -> str:
    """Format cores as taskset expects them: hexadecimal, one bit per core."""
    return f"{sum(1 << core for core in set(cores)):x}"
