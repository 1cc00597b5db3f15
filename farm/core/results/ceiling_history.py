"""Which clocks of a device are limited under load: a summary over its last runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.core.runs.trace_findings import Ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCeilings:
    """The ceilings of one run that were lowered; none where all stayed."""

    measured_at: datetime
    ceilings: Sequence[Ceiling]


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingHistory:
    """How a clock of a device was limited over its last runs."""

    #: Of the policy, or `gpu`.
    name: str
    hardware_hz: int
    lowest_hz: int
    #: Runs in which it was limited, of those whose ceilings are known.
    limited_runs: int
    runs: int
    #: The shortest time from the start of a run to its first limit.
    first_s: float
    last_at: datetime


def ceiling_history(runs: Sequence[RunCeilings]) -> tuple[CeilingHistory, ...]:
    """Return one summary for each clock that was limited, by its name."""
    limited: dict[str, list[tuple[datetime, Ceiling]]] = {}
    for run in runs:
        for ceiling in run.ceilings:
            limited.setdefault(ceiling.name, []).append((run.measured_at, ceiling))
    return tuple(
        CeilingHistory(
            name=name,
            hardware_hz=max(ceiling.hardware_hz for _, ceiling in found),
            lowest_hz=min(ceiling.lowest_hz for _, ceiling in found),
            limited_runs=len(found),
            runs=len(runs),
            first_s=min(ceiling.first_s for _, ceiling in found),
            last_at=max(at for at, _ in found),
        )
        for name, found in sorted(limited.items())
    )
