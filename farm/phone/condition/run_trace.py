"""The trace of a run as the sampler on the device writes it (agents/device/run/sampler.sh).

Lines before the samples state what is constant: `trace 1`, `start UPTIME`, `pause SECONDS`, `policy NAME
MIN MAX CORE...`, `gpu NAME CLOCK...`, and `columns NAME...`, which names the values of a sample. A sample is
`s UPTIME VALUE... .`, where `-` stands for a value that could not be read then; after the values, each child
of the process may have six more: its `rss`, `swap`, `peak`, `utime`, `stime` and `core`. Values are the first
words of the device's files, in its units. The supervisor adds `end UPTIME`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from farm.core.base.bounds import MAX_HERTZ
from farm.core.base.cpu_list import MAX_CORES, core_list
from farm.core.runs.trace import (
    DISCHARGING,
    MAX_SAMPLES,
    MAX_ZONES,
    ClockSample,
    RunTrace,
    TracePolicy,
    TraceSample,
)
from farm.phone.adb.decoding import decimal_number, whole_number
from farm.phone.condition.battery_units import (
    BatteryReading,
    ampere_hours,
    amperes_per_unit,
    volts,
)

T = TypeVar("T")

_FORMAT = "1"
_NAME = re.compile(r"[\w.,:+-]{1,64}", re.ASCII)
_END_OF_SAMPLE = "."
_VALUES_OF_CHILD = 6
_MAX_COLUMNS = 512
_MAX_UPTIME_S = 1e10
#: One core at most for three years.
_MAX_STEPS = 10**10
#: The kernel counts CPU time in steps of 10 ms (USER_HZ), whatever its own tick is.
_STEPS_PER_S = 100
_MAX_BYTES = 2**53 - 1
_MAX_COOLING = 2**31 - 1
_MAX_AMPERES = 1000.0
#: Sensors of phones work from -40 to 150 °C.
_LEAST_C, _MOST_C = -40.0, 150.0
_CHARGERS = {"charging": "charging", "discharging": DISCHARGING, "full": "full", "not": "not charging"}

Values = Mapping[str, str]


@dataclass(slots=True)
class _Draft:
    """The trace as far as it was read."""

    policies: dict[str, TracePolicy] = field(default_factory=dict)
    gpu_name: str | None = None
    gpu_max_hz: int | None = None
    started_s: float | None = None
    ended_s: float | None = None
    pause_s: float | None = None
    columns: tuple[str, ...] = ()
    samples: list[TraceSample] = field(default_factory=list)
    battery: list[BatteryReading] = field(default_factory=list)
    skipped: int = 0


def run_trace(text: str) -> RunTrace | None:
    """Parse a trace; None where there is none. Lines that are cut, doubled or interleaved are counted."""
    draft, lines = _Draft(), text.replace("\r", "").split("\n")
    if not any(line == f"trace {_FORMAT}" for line in lines):
        return None
    for line in lines[:-1]:
        if line and line != f"trace {_FORMAT}" and not _read(draft, line):
            draft.skipped += 1
    # A last line without its end may be any part of one.
    draft.skipped += bool(lines[-1])
    unit = amperes_per_unit(draft.battery)
    return RunTrace(
        policies=tuple(draft.policies.values()),
        gpu_name=draft.gpu_name,
        gpu_max_hz=draft.gpu_max_hz,
        started_uptime_s=draft.started_s,
        ended_uptime_s=draft.ended_s,
        pause_s=draft.pause_s,
        samples=tuple(
            replace(sample, battery_a=_amperes(reading.current, unit))
            for sample, reading in zip(draft.samples, draft.battery, strict=True)
        ),
        skipped_lines=draft.skipped,
        is_cut=draft.ended_s is None,
    )


def _read(draft: _Draft, line: str) -> bool:
    """Add a line to the draft; return False where it is not whole."""
    kind, *words = line.split(" ")
    match kind:
        case "s":
            return _read_sample(draft, words)
        case "columns":
            return _read_columns(draft, words)
        case "policy":
            return _read_policy(draft, words)
        case "gpu" if words and draft.gpu_name is None and _NAME.fullmatch(words[0]):
            clocks = (_gpu_hz(word) for word in words[1:])
            draft.gpu_name, draft.gpu_max_hz = words[0], max((hz for hz in clocks if hz), default=None)
        case "start" if draft.started_s is None and len(words) == 1:
            draft.started_s = _uptime_s(words[0])
            return draft.started_s is not None
        case "end" if draft.ended_s is None and len(words) == 1:
            draft.ended_s = _uptime_s(words[0])
            return draft.ended_s is not None
        case "pause" if len(words) == 1 and (pause_s := _uptime_s(words[0])) is not None:
            # Later ones tell what the samples show.
            draft.pause_s = draft.pause_s or min(pause_s, 1e8)
        case _:
            return False
    return True


def _read_columns(draft: _Draft, words: Sequence[str]) -> bool:
    is_whole = len(words) <= _MAX_COLUMNS and len(set(words)) == len(words)
    if draft.columns or not is_whole or not all(_NAME.fullmatch(word) for word in words):
        return False
    draft.columns = tuple(words)
    return True


def _read_policy(draft: _Draft, words: Sequence[str]) -> bool:
    if len(words) < 3 or not _NAME.fullmatch(words[0]) or words[0] in draft.policies:
        return False
    if draft.samples or len(draft.policies) >= MAX_CORES:
        return False
    draft.policies[words[0]] = TracePolicy(
        name=words[0],
        cores=core_list(" ".join(words[3:])) or (),
        hardware_min_hz=_cpu_hz(words[1]),
        hardware_max_hz=_cpu_hz(words[2]),
    )
    return True


def _read_sample(draft: _Draft, words: Sequence[str]) -> bool:
    known = len(draft.columns)
    if not draft.columns or len(words) < known + 2 or words[-1] != _END_OF_SAMPLE:
        return False
    values, children = dict(zip(draft.columns, words[1 : known + 1], strict=True)), words[known + 1 : -1]
    uptime_s = _uptime_s(words[0])
    if uptime_s is None or len(children) % _VALUES_OF_CHILD or len(draft.samples) >= MAX_SAMPLES:
        return False
    if draft.samples and uptime_s <= draft.samples[-1].uptime_s:
        return False
    used = _used_steps(values, children)
    charge = _optional(ampere_hours, whole_number(values.get("charge", "")))
    charger = _CHARGERS.get(values.get("status", "").lower())
    draft.samples.append(
        TraceSample(
            uptime_s=uptime_s,
            clocks=tuple(
                ClockSample(
                    limit_hz=_cpu_hz(values.get(f"limit:{name}", "")),
                    current_hz=_cpu_hz(values.get(f"clock:{name}", "")),
                )
                for name in draft.policies
            ),
            gpu=ClockSample(
                limit_hz=_gpu_hz(values.get("gpu_limit", "")), current_hz=_gpu_hz(values.get("gpu_clock", ""))
            ),
            allowed_cores=core_list(values.get("cores", "")) or (),
            rss_bytes=_memory(values.get("rss", ""), children[0::_VALUES_OF_CHILD]),
            swap_bytes=_memory(values.get("swap", ""), children[1::_VALUES_OF_CHILD]),
            peak_rss_bytes=_memory(values.get("peak", ""), children[2::_VALUES_OF_CHILD]),
            cpu_s=_cpu_s(used),
            # Where most of the work was; the first of equals is the process itself.
            core=max(used, key=lambda each: each[0] or 0)[1],
            temperatures_c=_by_name("zone:", values, _celsius),
            cooling=_by_name("cooling:", values, lambda text: _within(whole_number(text), _MAX_COOLING)),
            battery_v=_optional(volts, _within(whole_number(values.get("voltage", "")), 10**9)),
            battery_charge_ah=charge if charge is None or abs(charge) <= _MAX_AMPERES else None,
            charger=charger,
        )
    )
    draft.battery.append(
        BatteryReading(
            uptime_s=uptime_s,
            current=whole_number(values.get("current", "")),
            charge_ah=draft.samples[-1].battery_charge_ah,
            charger=charger,
        )
    )
    return True


def _amperes(current: int | None, unit: float | None) -> float | None:
    if current is None or unit is None:
        return None
    return amperes if abs(amperes := current * unit) <= _MAX_AMPERES else None


def _memory(own: str, children: Sequence[str]) -> int | None:
    """Return the sum in bytes of numbers of KiB; None where the process's own is hidden."""
    sizes = [_within(whole_number(text), _MAX_BYTES) for text in (own, *children)]
    total = sum(size for size in sizes if size is not None) * 1024
    return None if sizes[0] is None else _within(total, _MAX_BYTES)


def _used_steps(values: Values, children: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Return CPU time and core of the process, of its children that have ended, and of each other child."""
    texts = [(values.get("utime", ""), values.get("stime", ""), values.get("core", ""))]
    texts += [(values.get("cutime", ""), values.get("cstime", ""), "")]
    texts += zip(*(children[place::_VALUES_OF_CHILD] for place in (3, 4, 5)), strict=True)
    used = []
    for utime, stime, core in texts:
        steps = [_within(whole_number(text), _MAX_STEPS) for text in (utime, stime)]
        known = [step for step in steps if step is not None]
        total = sum(known) if len(known) == len(steps) else None
        used.append((total, _within(whole_number(core), MAX_CORES - 1)))
    return used


def _cpu_s(used: Sequence[tuple[int | None, int | None]]) -> float | None:
    own = used[0][0]
    return None if own is None else sum(steps for steps, _ in used if steps is not None) / _STEPS_PER_S


def _by_name(prefix: str, values: Values, read: Callable[[str], T | None]) -> dict[str, T]:
    texts = {name.removeprefix(prefix): text for name, text in values.items() if name.startswith(prefix)}
    pairs = ((name, read(text)) for name, text in texts.items())
    known = [(name, value) for name, value in pairs if value is not None]
    return dict(known[:MAX_ZONES])


def _uptime_s(text: str) -> float | None:
    uptime_s = decimal_number(text)
    return uptime_s if uptime_s is not None and 0 <= uptime_s <= _MAX_UPTIME_S else None


def _cpu_hz(text: str) -> int | None:
    """Return a number of kHz in Hz; a clock that is not there is 0, or all ones."""
    kilohertz = whole_number(text)
    return None if kilohertz is None or not 0 < kilohertz <= MAX_HERTZ // 1000 else kilohertz * 1000


def _gpu_hz(text: str) -> int | None:
    """Return a GPU's clock: Hz (kgsl, devfreq), kHz (Mali of Tensor) or MHz (Exynos), by its size."""
    value = whole_number(text)
    if value is None or not 0 < value <= MAX_HERTZ:
        return None
    return value * (1 if value >= 10_000_000 else 1000 if value >= 10_000 else 1_000_000)


def _celsius(text: str) -> float | None:
    """Return a temperature: in m°C as the kernel documents it, in °C or tenths as older drivers print it."""
    value = whole_number(text)
    if value is None:
        return None
    celsius = value / 1000 if abs(value) >= 1000 else float(value) if abs(value) <= _MOST_C else value / 10
    return celsius if value != 0 and _LEAST_C <= celsius <= _MOST_C else None


def _within(value: int | None, most: int) -> int | None:
    return value if value is not None and 0 <= value <= most else None


def _optional(convert: Callable[[int], T], value: int | None) -> T | None:
    return None if value is None else convert(value)
