"""Farms of simulated phones: which there are, when they measure, by which versions, and with which noise.

The simulator of `independent_histories.py` was written from the columns of `farm history detect` alone,
without the detector and the simulator it was made with. What is drawn here is what quiet farms do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Days = NDArray[np.int64]
BASE = "base"
_VARIANTS = ("int8", "gpu", "fp16", "npu")
ACCELERATORS = frozenset({"gpu", "npu"})
_YEAR = 365.0


class Cell(NamedTuple):
    """What a series measures on its phone."""

    network: str
    variant: str
    harness: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmPhone:
    """A phone; days count from the first of the history."""

    name: str
    model: str
    #: On which it measures, one or several times.
    days: Days
    #: Logarithm of its times against what it took on the first day, by day.
    wander: Floats
    #: Mean standard deviation of a start by heat, which both sides of a pair share.
    heat: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesNoise:
    """How a series differs from the wander of its phone."""

    level: float
    #: Of the wander that the series follows; 1 follows it wholly.
    follows: float
    #: Standard deviation of a session about the level of the phone.
    deviation: float
    #: Of the variance of a session, what its standard error can see.
    seen: float
    is_heavy_tailed: bool


class Version(NamedTuple):
    """What runs since a day."""

    since: int
    name: str


@dataclass(slots=True, kw_only=True)
class FarmVersions:
    """Which version runs since when, in the order of days: the first is there from the start."""

    program_by_harness: dict[str, list[Version]] = field(default_factory=dict)
    file_by_cell: dict[Cell, list[Version]] = field(default_factory=dict)
    build_by_phone: dict[str, list[Version]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class QuietFarm:
    """A farm in which nothing changes but versions that do not matter."""

    days: int
    rounds: int
    phones: Sequence[FarmPhone]
    noise_by_series: Mapping[tuple[str, Cell], SeriesNoise]
    versions: FarmVersions

    @cached_property
    def phone_by_name(self) -> Mapping[str, FarmPhone]:
        """Return the phones."""
        return {phone.name: phone for phone in self.phones}

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """Return what is measured on any phone."""
        return sorted({cell for _, cell in self.noise_by_series})


def series_name(phone: str, cell: Cell) -> str:
    """Return the name of a series."""
    return f"{phone}/{'/'.join(cell)}"


def quiet_farm(rng: Generator) -> QuietFarm:
    """Draw a farm: 6 to 20 phones of 2 to 5 models, 1 to 3 networks, 2 to 4 variants beside the base."""
    days = int(rng.integers(90, 301))
    harnesses = ["litert"] if rng.random() < 0.75 else ["litert", "onnxruntime"]
    networks = [f"net{number}" for number in range(int(rng.integers(1, 4 if len(harnesses) == 1 else 3)))]
    variants = [BASE, *_VARIANTS[: int(rng.integers(2, 5))]]
    cells = [Cell(n, v, h) for n in networks for v in variants for h in harnesses]
    phones = _phones(rng, days)
    return QuietFarm(
        days=days,
        rounds=int(rng.integers(5, 16)),
        phones=phones,
        noise_by_series=_noises(rng, phones, cells),
        versions=_versions(rng, days, phones, cells),
    )


def _phones(rng: Generator, days: int) -> list[FarmPhone]:
    count = int(rng.integers(6, 21))
    models = [f"model{number}" for number in range(int(rng.integers(2, 6)))]
    of_phones = [*models, *rng.choice(models, size=count - len(models))]
    is_up = np.ones(days, dtype=bool)
    for _ in range(rng.poisson(days / 120)):
        _outage(rng, is_up, most=14)
    every = int(rng.choice([1, 1, 1, 1, 1, 2]))
    is_up[np.arange(days) % every != 0] = False
    # Rooms grow hot for all phones alike, each as far as it minds.
    hot_room = _spells(rng, days, per_day=1 / 100, longest=6, least=0.01, most=0.06)
    phones = []
    for number, model in enumerate(of_phones):
        measures = is_up & (rng.random(days) < rng.uniform(0.75, 0.98))
        if rng.random() < 0.2:
            measures[: int(days * rng.uniform(0.1, 0.6))] = False
        if rng.random() < 0.07:
            measures[int(days * rng.uniform(0.6, 0.95)) :] = False
        for _ in range(rng.poisson(days / 180)):
            _outage(rng, measures, most=30)
        measured = np.flatnonzero(measures)
        twice = measured[rng.random(len(measured)) < 0.02]
        own_heat = _spells(rng, days, per_day=1 / 60, longest=3, least=0.02, most=0.1)
        phones.append(
            FarmPhone(
                name=f"phone{number:02d}",
                model=str(model),
                days=np.sort(np.concatenate([measured, twice])).astype(np.int64),
                wander=_wander(rng, days) + own_heat + hot_room * rng.uniform(0.3, 1.5),
                heat=rng.uniform(0.01, 0.03),
            )
        )
    return phones


def _outage(rng: Generator, is_up: NDArray[np.bool_], *, most: int) -> None:
    begin = int(rng.integers(0, len(is_up)))
    is_up[begin : begin + int(rng.integers(2, most + 1))] = False


def _spells(rng: Generator, days: int, *, per_day: float, longest: int, least: float, most: float) -> Floats:
    """Return what hot spells add to the logarithm of times, by day."""
    heat = np.zeros(days)
    for begin in np.flatnonzero(rng.random(days) < per_day):
        heat[begin : begin + int(rng.integers(1, longest + 1))] += rng.uniform(least, most)
    return heat


def _wander(rng: Generator, days: int) -> Floats:
    """Return an Ornstein-Uhlenbeck process of 1 to 4 % about a trend of about 2 % a year."""
    deviation, lasts = rng.uniform(0.01, 0.04), rng.uniform(3.0, 25.0)
    keeps = np.exp(-1 / lasts)
    pushes = rng.normal(0.0, deviation * np.sqrt(1 - keeps**2), days)
    level = np.empty(days)
    level[0] = rng.normal(0.0, deviation)
    for day in range(1, days):
        level[day] = keeps * level[day - 1] + pushes[day]
    return level + rng.normal(0.0, 0.02) * np.arange(days) / _YEAR


def _noises(
    rng: Generator, phones: Sequence[FarmPhone], cells: Sequence[Cell]
) -> dict[tuple[str, Cell], SeriesNoise]:
    noises = {}
    by_model: dict[tuple[str, Cell], tuple[float, float, bool]] = {}
    for phone in phones:
        for cell in cells:
            is_base, is_accelerator = cell.variant == BASE, cell.variant in ACCELERATORS
            drawn = (
                rng.normal(2.5, 0.6),
                rng.uniform(0.002, 0.008) if is_base else np.exp(rng.uniform(np.log(0.003), np.log(0.025))),
                bool(is_accelerator and rng.random() < 0.15),
            )
            level, deviation, is_unsupported = by_model.setdefault((phone.model, cell), drawn)
            if is_unsupported:
                continue
            noises[phone.name, cell] = SeriesNoise(
                level=level + rng.normal(0.0, 0.05),
                follows=rng.normal(1.0, 0.08 if is_accelerator else 0.03),
                deviation=float(deviation * np.exp(rng.normal(0.0, 0.25))),
                seen=rng.uniform(0.15, 1.0),
                is_heavy_tailed=bool(rng.random() < 0.3),
            )
    return noises


def _versions(rng: Generator, days: int, phones: Sequence[FarmPhone], cells: Sequence[Cell]) -> FarmVersions:
    versions = FarmVersions()
    for harness in sorted({cell.harness for cell in cells}):
        releases = _quiet_days(rng, days, every=45)
        versions.program_by_harness[harness] = [Version(day, f"{harness}-{day}") for day in releases]
    for cell in cells:
        releases = _quiet_days(rng, days, every=150)
        versions.file_by_cell[cell] = [Version(day, f"{'-'.join(cell)}-{day}") for day in releases]
    for model in sorted({phone.model for phone in phones}):
        releases = _quiet_days(rng, days, every=80)
        for phone in phones:
            if phone.model == model:
                # In the order of releases.
                delays = rng.integers(0, 15, len(releases)) * (np.array(releases) > 0)
                installed = np.maximum.accumulate(np.array(releases) + delays)
                versions.build_by_phone[phone.name] = [
                    Version(int(since), f"{model}-{day}")
                    for since, day in zip(installed, releases, strict=True)
                ]
    return versions


def _quiet_days(rng: Generator, days: int, *, every: float) -> list[int]:
    """Return the first day and those of new versions, which come at random, a week apart at least."""
    drawn = sorted({int(day) for day in rng.integers(1, days, rng.poisson(days / every))})
    kept = [day for before, day in pairwise([-7, *drawn]) if day - before >= 7]
    return [0, *kept]
