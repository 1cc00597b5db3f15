"""The condition of a device at one moment, its range over runs, and the gates that a run must pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Annotated

from farm.core.base.bounds import (
    AtMost,
    Bytes,
    Celsius,
    Cores,
    Hertz,
    Load,
    Note,
    Percent,
    Range,
    TimeByClock,
    UptimeSeconds,
    Word,
)
from farm.core.devices.controls import Controls, ControlState, Screen
from farm.core.devices.device import Cluster

#: A clock whose limit is this share of what its hardware can do, or more, makes no difference that counts.
FULL_CLOCK = 0.98


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
class CpuPolicy:
    """Cores that change their clock together, as cpufreq shows them at one moment."""

    #: `policy0`.
    name: Word
    cores: Cores = ()
    governor: Word | None = None
    current_hz: Hertz | None = None
    min_hz: Hertz | None = None
    #: The limit now (scaling_max_freq): thermal throttling lowers it on many phones.
    max_hz: Hertz | None = None
    #: The limits of the hardware.
    hardware_min_hz: Hertz | None = None
    hardware_max_hz: Hertz | None = None
    #: Time at each frequency since boot, milliseconds by hertz; two readings give the clocks of a run.
    time_in_state_ms: TimeByClock = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One look at a phone. None means that the phone does not say, never zero."""

    taken_at: datetime
    boot_id: Word | None = None
    uptime_s: UptimeSeconds | None = None
    thermal_status: ThermalStatus | None = None
    #: The hottest current skin temperature the thermal HAL reports.
    skin_c: Celsius | None = None
    #: The skin temperature from which the device throttles, where it reports one.
    skin_limit_c: Celsius | None = None
    #: Current HAL temperatures by sensor name.
    temperatures_c: Annotated[Mapping[Word, Celsius], AtMost(512)] = field(default_factory=dict)
    #: How far each cooling device of the thermal HAL limits its hardware: 0 is not at all.
    cooling: Annotated[Mapping[Word, Annotated[int, Range(-(2**53), 2**53)]], AtMost(512)] = field(
        default_factory=dict
    )
    battery_level_pct: Percent | None = None
    battery_c: Celsius | None = None
    battery_v: Annotated[float, Range(0.0, 1000.0)] | None = None
    #: `good`, or what is wrong with it: `overheat`, `dead`, `over voltage`, `failure`, `cold`, `fair`.
    battery_health: Word | None = None
    charging: bool | None = None
    #: The agent's action on its charging, in words; None without one.
    charging_note: Note | None = None
    #: Power source of the phone: `ac`, `usb`, `wireless`, `dock`, `none`.
    plugged: Word | None = None
    screen_on: bool | None = None
    #: True if it is set to stay awake while it is plugged in.
    stay_awake: bool | None = None
    load_1m: Load | None = None
    memory_available_bytes: Bytes | None = None
    #: Free bytes on the file system that holds the work root.
    storage_free_bytes: Bytes | None = None
    cpus: Annotated[tuple[CpuPolicy, ...], AtMost(256)] = ()
    #: Cores that are switched on.
    online_cores: Cores = ()
    #: The busiest processes, in percent of one core by process; read only where the load is high.
    busiest_pct: Annotated[Mapping[Word, Load], AtMost(64)] = field(default_factory=dict)
    #: The current load of the GPU, where its driver reports it.
    gpu_busy_pct: Annotated[float, Range(0.0, 100.0)] | None = None


class UnknownGatePolicy(StrEnum):
    """The treatment of a run whose device does not report a gated condition."""

    #: It runs, and that it was unknown is recorded.
    RUN = "run"
    #: It is deferred, as if the gate were shut.
    DEFER = "defer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The conditions that must hold before a run starts. `unknown` decides on unreported ones."""

    max_thermal_status: ThermalStatus = ThermalStatus.NONE
    max_skin_c: float = 38.0
    min_battery_pct: int = 20
    min_storage_bytes: int = 256 * 1024 * 1024
    max_battery_c: float = 45.0
    #: Plugged in before, during and after the run.
    mains: bool = False
    #: No clock is limited below what its hardware can do, before or after the run, unless a control does.
    full_clocks: bool = True
    unknown: UnknownGatePolicy = UnknownGatePolicy.RUN
    #: Longest wait for the gates before the job is deferred.
    wait_s: float = 300.0


def closed_gates(condition: Condition, gates: Gates, controls: Controls | None = None) -> list[str]:
    """Describe the shut gates for a person; empty when the device is fit.

    With `controls`, a screen in another state than requested also blocks a run.
    """
    shut = [
        *_limit_gates(condition, gates),
        *([] if controls is None else _screen_gates(condition, controls)),
    ]
    if gates.full_clocks:
        shut += limited_clocks(condition)
    if gates.unknown is UnknownGatePolicy.DEFER:
        shut += [f"{name} unknown: the phone does not report it" for name in unknown_gates(condition, gates)]
    return shut


def cpu_clusters(condition: Condition) -> tuple[Cluster, ...]:
    """Return a device's core clusters, slowest first, by its cpufreq policies; empty where one is hidden."""
    policies = sorted(condition.cpus, key=lambda policy: (policy.hardware_max_hz or 0, policy.cores))
    if any(policy.hardware_max_hz is None or not policy.cores for policy in policies):
        return ()
    return tuple(
        Cluster(cores=policy.cores, min_hz=policy.hardware_min_hz, max_hz=policy.hardware_max_hz)
        for policy in policies
    )


def unknown_gates(condition: Condition, gates: Gates) -> list[str]:
    """Return the conditions that gates require and the device does not report."""
    value_by_name = {
        "thermal status": condition.thermal_status,
        "skin temperature": condition.skin_c,
        "battery level": condition.battery_level_pct,
        "battery temperature": condition.battery_c,
        "free storage": condition.storage_free_bytes,
        **({"plugged in": condition.plugged} if gates.mains else {}),
        **({"CPU clocks": _clock_limits(condition)} if gates.full_clocks else {}),
    }
    return [name for name, value in value_by_name.items() if value is None]


def _clock_limits(condition: Condition) -> tuple[int, ...] | None:
    """Return the limit of each policy; None where a visible policy hides its limit, or none is visible."""
    limits = [None if policy.hardware_max_hz is None else policy.max_hz for policy in condition.cpus]
    visible = tuple(limit for limit in limits if limit is not None)
    return visible if visible and len(visible) == len(limits) else None


def limited_clocks(condition: Condition, controls: Sequence[ControlState] = ()) -> list[str]:
    """Describe the clocks limited below their hardware maximum, except those limited on purpose."""
    limited_on_purpose = {state.name.partition(".")[0] for state in controls}
    return [
        f"{policy.name} is limited to {policy.max_hz / 1e9:.2f} of {policy.hardware_max_hz / 1e9:.2f} GHz"
        for policy in condition.cpus
        if policy.max_hz is not None
        and policy.hardware_max_hz is not None
        and policy.max_hz < FULL_CLOCK * policy.hardware_max_hz
        and policy.name not in limited_on_purpose
    ]


def _screen_gates(condition: Condition, controls: Controls) -> Iterator[str]:
    requested, is_on = {Screen.ON: True, Screen.OFF: False}.get(controls.screen), condition.screen_on
    if requested is not None and is_on is not None and requested is not is_on:
        yield f"the screen is {'on' if is_on else 'off'}, it must be {controls.screen}"
    if controls.stay_awake and condition.stay_awake is False:
        yield "it is not set to stay awake while it is plugged in"


def _limit_gates(condition: Condition, gates: Gates) -> Iterator[str]:
    status, skin, heat = condition.thermal_status, condition.skin_c, condition.battery_c
    level, free = condition.battery_level_pct, condition.storage_free_bytes
    if status is not None and status > gates.max_thermal_status:
        yield f"thermal status {status.name}, at most {gates.max_thermal_status.name}"
    if skin is not None and skin > gates.max_skin_c:
        yield f"skin {skin:.1f} C, at most {gates.max_skin_c:.1f} C"
    if level is not None and level < gates.min_battery_pct:
        yield f"battery {level} %, at least {gates.min_battery_pct} %"
    if heat is not None and heat > gates.max_battery_c:
        yield f"battery {heat:.1f} C, at most {gates.max_battery_c:.1f} C"
    if gates.mains and condition.plugged == "none":
        yield "not plugged in"
    if free is not None and free < gates.min_storage_bytes:
        yield f"{free // 1048576} MiB free, at least {gates.min_storage_bytes // 1048576} MiB"


#: The conditions with a range; units are in the names.
_RANGED = (
    "thermal_status",
    "skin_c",
    "battery_c",
    "battery_level_pct",
    "load_1m",
    "memory_available_bytes",
)

ConditionPair = tuple[Condition | None, Condition | None]
"""The phone right before and right after a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRange:
    """The lowest and highest value before and after some runs; None where no phone reported one."""

    name: str
    before: tuple[float, float] | None
    after: tuple[float, float] | None
    #: The number of runs with a value, before or after.
    known: int


def condition_ranges(runs: Sequence[ConditionPair]) -> tuple[ConditionRange, ...]:
    """Return one range for each condition that any device reported."""
    ranges = (_range_of(name, runs) for name in _RANGED)
    return tuple(condition_range for condition_range in ranges if condition_range.known)


def _range_of(name: str, runs: Sequence[ConditionPair]) -> ConditionRange:
    values = [
        tuple(None if condition is None else getattr(condition, name) for condition in pair) for pair in runs
    ]
    return ConditionRange(
        name=name,
        before=_min_max(before for before, _ in values),
        after=_min_max(after for _, after in values),
        known=sum(1 for pair in values if any(condition is not None for condition in pair)),
    )


def _min_max(values: Iterable[float | None]) -> tuple[float, float] | None:
    reported = [float(value) for value in values if value is not None]
    return (min(reported), max(reported)) if reported else None
