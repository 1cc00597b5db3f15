"""The points of a simulated farm, as the CSV that `farm history detect` reads."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import sqrt

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks.independent_changes import ChangeKind, TrueChange, changes_of
from benchmarks.independent_farm import (
    BASE,
    Cell,
    FarmPhone,
    Floats,
    QuietFarm,
    SeriesNoise,
    Version,
    quiet_farm,
    series_name,
)

COLUMNS = (
    "series",
    "device",
    "device_model",
    "unit",
    "network",
    "variant",
    "harness",
    "day",
    "time",
    "log_time",
    "se_time",
    "log_speedup",
    "se_speedup",
    "n",
    "file",
    "program",
    "os",
)
_FIRST_DAY = date(2025, 1, 1)
_LOST = 0.015
#: Something else ran on the phone.
_DISTURBED, _LEAST_DISTURBED, _MOST_DISTURBED = 0.004, 0.03, 0.25
_TAIL_DEGREES = 3
Row = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedHistory:
    """Points, and what changed."""

    seed: int
    farm: QuietFarm
    changes: Sequence[TrueChange]
    #: In the order of days.
    rows: Sequence[Row]

    def csv(self, until: str = "9999") -> str:
        """Return the file of the points up to a day and with it."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in self.rows if row["day"] <= until)
        return text.getvalue()


@dataclass(frozen=True, slots=True)
class _Measured:
    """A series, by session of its phone; NaN where it was not measured."""

    log_time: Floats
    #: Standard error without what base and series share.
    error: Floats
    rounds: int


def history(seed: int, only: ChangeKind | None = None) -> SimulatedHistory:
    """Draw a farm, its changes (or one large one of a kind) and its points."""
    rng = default_rng(seed)
    farm = quiet_farm(rng)
    changes = changes_of(rng, farm, only)
    rows = [row for phone in farm.phones for row in _rows_of(rng, farm, phone, changes)]
    rows.sort(key=lambda row: (row["day"], row["time"]))
    return SimulatedHistory(seed=seed, farm=farm, changes=changes, rows=rows)


def day_text(day: int) -> str:
    """Return a day of a history as its points have it."""
    return (_FIRST_DAY + timedelta(days=day)).isoformat()


def day_number(text: str) -> int:
    """Return which day of a history it is."""
    return (date.fromisoformat(text) - _FIRST_DAY).days


def _rows_of(
    rng: Generator, farm: QuietFarm, phone: FarmPhone, changes: Sequence[TrueChange]
) -> Iterator[Row]:
    count = len(phone.days)
    is_first = np.concatenate([[True], np.diff(phone.days) > 0])[:count]
    minutes = rng.integers(0, 600, count) + np.where(is_first, 0, 700)
    # What is warm at the moment warms both sides of a pair.
    shared_error = phone.heat / np.sqrt(farm.rounds)
    shared = phone.wander[phone.days] + rng.normal(0.0, np.hypot(shared_error, 0.003), count)
    measured = {
        cell: _measured(rng, farm, phone, cell, shared, changes)
        for cell in farm.cells
        if (phone.name, cell) in farm.noise_by_series
    }
    for cell, own in measured.items():
        base = measured.get(cell._replace(variant=BASE))
        pair_noise = rng.normal(0.0, 0.0005, count)
        time_error = np.hypot(own.error, shared_error * _estimated(rng, own.rounds, count))
        for at in np.flatnonzero(np.isfinite(own.log_time)):
            day = int(phone.days[at])
            row = {
                "series": series_name(phone.name, cell),
                "device": phone.name,
                "device_model": phone.model,
                "unit": f"unit-{phone.name}",
                **cell._asdict(),
                "day": day_text(day),
                "time": f"{minutes[at] // 60:02d}:{minutes[at] % 60:02d}:00",
                "log_time": f"{own.log_time[at]:.6f}",
                "se_time": f"{time_error[at]:.6f}",
                "log_speedup": "",
                "se_speedup": "",
                "n": str(own.rounds),
                "file": _running(farm.versions.file_by_cell[cell], day),
                "program": _running(farm.versions.program_by_harness[cell.harness], day),
                "os": _running(farm.versions.build_by_phone[phone.name], day),
            }
            if cell.variant != BASE and base is not None and np.isfinite(base.log_time[at]):
                row["log_speedup"] = f"{base.log_time[at] - own.log_time[at] + pair_noise[at]:.6f}"
                row["se_speedup"] = f"{np.hypot(base.error[at], own.error[at]):.6f}"
            yield row


def _measured(
    rng: Generator,
    farm: QuietFarm,
    phone: FarmPhone,
    cell: Cell,
    shared: Floats,
    changes: Sequence[TrueChange],
) -> _Measured:
    noise, days, count = farm.noise_by_series[phone.name, cell], phone.days, len(phone.days)
    log_time = noise.level + noise.follows * shared
    for change in changes:
        course = change.course_by_series.get((phone.name, cell))
        if course is not None:
            share = (days - course.begin + 1) / (course.ramp + 1)
            log_time = log_time + course.delta * np.clip(share, 0.0, 1.0)
    within = noise.deviation * np.sqrt(noise.seen)
    log_time = log_time + rng.normal(0.0, within, count) + _between_sessions(rng, noise, count)
    error = within * _estimated(rng, farm.rounds, count)
    is_disturbed = rng.random(count) < _DISTURBED
    log_time = log_time + is_disturbed * rng.uniform(_LEAST_DISTURBED, _MOST_DISTURBED, count)
    error = error * np.where(is_disturbed & (rng.random(count) < 0.5), 3.0, 1.0)
    log_time = np.where(rng.random(count) < _LOST, np.nan, log_time)
    return _Measured(log_time, error, farm.rounds)


def _between_sessions(rng: Generator, noise: SeriesNoise, count: int) -> Floats:
    """Return the noise of sessions that no standard error of a session can see."""
    deviation = noise.deviation * sqrt(1 - noise.seen)
    if not noise.is_heavy_tailed:
        return rng.normal(0.0, deviation, count)
    tailed: Floats = rng.standard_t(_TAIL_DEGREES, count) / sqrt(_TAIL_DEGREES / (_TAIL_DEGREES - 2))
    return deviation * tailed


def _estimated(rng: Generator, rounds: int, count: int) -> Floats:
    """Return by how much standard errors of so many rounds are off."""
    squares: Floats = rng.chisquare(rounds - 1, count)
    return np.sqrt(squares / (rounds - 1))


def _running(versions: Sequence[Version], day: int) -> str:
    return max(version for version in versions if version.since <= day).name
