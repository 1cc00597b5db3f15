"""What a phone is like at one moment, and whether that is fit for measuring."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum


class ThermalStatus(IntEnum):
    """Android's thermal status (android.os.PowerManager, THERMAL_STATUS_*)."""

    NONE = 0
    LIGHT = 1
    MODERATE = 2
    SEVERE = 3
    CRITICAL = 4
    EMERGENCY = 5
    SHUTDOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One look at a phone. None means that the phone does not say, never zero."""

    taken_at: datetime
    boot_id: str | None = None
    uptime_s: float | None = None
    thermal_status: ThermalStatus | None = None
    #: The hottest current skin temperature the thermal HAL reports.
    skin_c: float | None = None
    #: Current HAL temperatures by sensor name.
    temperatures_c: Mapping[str, float] = field(default_factory=dict)
    battery_level_pct: int | None = None
    battery_c: float | None = None
    charging: bool | None = None
    load_1m: float | None = None
    memory_available_bytes: int | None = None
    #: Free bytes on the file system that holds the work root.
    storage_free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What must hold before a run starts. A value the phone does not report passes."""

    max_thermal_status: ThermalStatus = ThermalStatus.NONE
    max_skin_c: float = 38.0
    min_battery_pct: int = 20
    min_storage_bytes: int = 256 * 1024 * 1024
    #: How long to wait for the gates before the job is put off.
    wait_s: float = 300.0


def closed_gates(condition: Condition, gates: Gates) -> list[str]:
    """Say which gates are shut, in words for a person; empty when the phone is fit."""
    shut: list[str] = []
    status, skin = condition.thermal_status, condition.skin_c
    level, free = condition.battery_level_pct, condition.storage_free_bytes
    if status is not None and status > gates.max_thermal_status:
        shut.append(f"thermal status {status.name}, at most {gates.max_thermal_status.name}")
    if skin is not None and skin > gates.max_skin_c:
        shut.append(f"skin {skin:.1f} C, at most {gates.max_skin_c:.1f} C")
    if level is not None and level < gates.min_battery_pct:
        shut.append(f"battery {level} %, at least {gates.min_battery_pct} %")
    if free is not None and free < gates.min_storage_bytes:
        shut.append(f"{free // 1048576} MiB free, at least {gates.min_storage_bytes // 1048576} MiB")
    return shut
