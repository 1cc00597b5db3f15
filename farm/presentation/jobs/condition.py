"""The conditions of a device around a run as text: by name, before and after."""

from collections.abc import Iterator, Sequence

from farm.core.base.units import size_text
from farm.core.devices.condition import Condition, CpuPolicy
from farm.presentation.text import EMPTY_CELL, local_time_text


def condition_values(condition: Condition) -> dict[str, str]:
    """Return what a device reports, by name: `skin temperature` is `33.2 °C`; nothing that it hides."""
    return {name: text for name, text in _values(condition) if text is not None}


def condition_text(condition: Condition | None) -> str:
    """Return a condition as one line; `-` without one."""
    if condition is None:
        return EMPTY_CELL
    values = (f"{name}: {text}" for name, text in condition_values(condition).items())
    return ", ".join([local_time_text(condition.taken_at), *values])


def condition_rows(
    before: Condition | None, after: Condition | None
) -> Sequence[tuple[str, str | None, str | None]]:
    """Return the name of each value that either condition has, with the values before and after a run."""
    sides = [{} if side is None else condition_values(side) for side in (before, after)]
    return [(name, sides[0].get(name), sides[1].get(name)) for name in {**sides[0], **sides[1]}]


def _values(condition: Condition) -> Iterator[tuple[str, str | None]]:
    status = condition.thermal_status
    yield "thermal status", None if status is None else status.name
    yield "skin temperature", _with_unit(condition.skin_c, "{:.1f} °C")
    yield "battery level", _with_unit(condition.battery_level_pct, "{} %")
    yield "battery temperature", _with_unit(condition.battery_c, "{:.1f} °C")
    yield "battery voltage", _with_unit(condition.battery_v, "{:.2f} V")
    yield "battery health", condition.battery_health
    yield from ((f"cooled by {name}", str(level)) for name, level in condition.cooling.items() if level)
    yield "charging", _yes_or_no(condition.charging)
    yield "plugged in", condition.plugged
    screen = condition.screen_on
    yield "screen", None if screen is None else "on" if screen else "off"
    yield from ((policy.name, _clock(policy)) for policy in condition.cpus)
    yield "GPU load", _with_unit(condition.gpu_busy_pct, "{:.0f} %")
    yield from ((name, f"{busy:.0f} % of a core") for name, busy in condition.busiest_pct.items())
    yield "load", _with_unit(condition.load_1m, "{:.2f}")
    yield "free memory", _bytes(condition.memory_available_bytes)
    yield "free storage", _bytes(condition.storage_free_bytes)


def _clock(policy: CpuPolicy) -> str | None:
    """Return `at 2.11 limit 2.11 of 2.75 GHz`."""
    parts = [
        None if hz is None else f"{word} {hz / 1e9:.2f}"
        for word, hz in (("at", policy.current_hz), ("limit", policy.max_hz), ("of", policy.hardware_max_hz))
    ]
    clocks = " ".join(part for part in parts if part)
    return f"{clocks} GHz" if clocks else None


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _with_unit(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value)


def _bytes(count: int | None) -> str | None:
    return None if count is None else size_text(count)
