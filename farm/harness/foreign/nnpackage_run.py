"""What Samsung's `nnpackage_run` (ONE) prints: a line each warm-up and each run."""

import re
from dataclasses import dataclass

_LINE = re.compile(r"\.{3} (warmup|run) ([0-9]{1,9}) takes ([0-9]{1,12}(?:\.[0-9]{1,9})?) ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRuns:
    """Times in milliseconds, in their order."""

    warmups_ms: tuple[float, ...]
    runs_ms: tuple[float, ...]


def package_runs(text: str) -> PackageRuns:
    """Read an output; a run that is printed twice counts once."""
    by_kind: dict[str, dict[int, float]] = {"warmup": {}, "run": {}}
    for kind, number, value in _LINE.findall(text):
        by_kind[kind][int(number)] = float(value)
    warmups, runs = (tuple(by_kind[kind][at] for at in sorted(by_kind[kind])) for kind in ("warmup", "run"))
    return PackageRuns(warmups_ms=warmups, runs_ms=runs)
