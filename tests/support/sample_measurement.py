"""A measurement as speedups see it, without a database."""

from dataclasses import dataclass

from farm.core.base.ids import FactsId
from farm.core.devices.controls import ControlLevel
from farm.core.runs.measurement import Quality, SampleKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredValue:
    """One process start."""

    round: int
    block: int = 0
    repeat: int = 0
    value_ns: float
    kind: SampleKind
    quality: Quality
    clock_step_ns: int = 0
    start_skin_c: float | None = None
    start_battery_c: float | None = None
    boot_id: str | None = None
    start_uptime_s: float | None = None
    facts_id: FactsId | None = None
    control_level: ControlLevel = ControlLevel.FREE
