"""What a process logged that nobody foresaw: exceptions that only the outermost loop caught."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def mistakes(log: Path) -> Iterator[str]:
    """Each error with a traceback, and each line of one that Python printed by itself."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("Traceback"):
            yield f"{log}: {line}"
        elif '"exception"' in line and (entry := _entry(line)).get("level") in ("error", "critical"):
            raised = entry["exception"][-1]
            yield f"{log}: {entry.get('event')}: {raised['exc_type']}: {raised['exc_value']}"


def _entry(line: str) -> dict[str, Any]:
    """Nothing for a line that a kill cut short."""
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return entry
