"""Small histories with a known change."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from farm.core.results.history.changes.points import BASELINE, Point

FIRST_DAY = 700_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A change of log time of the series it holds for, from a day on."""

    day: int
    delta: float
    holds_for: Callable[[str, str, str], bool]
    #: Days up to the full change.
    ramp: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A farm of some devices with one network each or more, measured once a day."""

    devices: int = 3
    networks: int = 2
    variants: tuple[str, ...] = (BASELINE, "int8", "fp16")
    days: int = 60
    noise: float = 0.01
    #: Of the level of a device, from day to day.
    wander: float = 0.004
    shifts: tuple[Shift, ...] = ()
    #: `(kind, device, network, variant)` -> days and versions; a part that is empty matches all.
    versions: Mapping[tuple[str, str, str, str], tuple[tuple[int, str], ...]] = field(default_factory=dict)
    skips: Callable[[str, int], bool] = lambda device, day: False
    #: Whether a variant of a network is measured on a day.
    is_measured: Callable[[str, str, int], bool] = lambda network, variant, day: True
    #: Broken sessions: `(series, day)` -> how much slower.
    broken: Mapping[tuple[str, int], float] = field(default_factory=dict)
    seed: int = 1

    def points(self) -> list[Point]:
        """Return all points, oldest first."""
        return list(self._points())

    def _points(self) -> Iterator[Point]:
        random = Random(self.seed)
        for day in range(self.days):
            for number in range(self.devices):
                device = f"d{number}"
                shared = random.gauss(0, self.wander)
                for at in range(self.networks):
                    network = f"n{at}"
                    base = math.nan
                    for variant in self.variants:
                        value = (
                            2.0
                            + shared
                            + random.gauss(0, self.noise)
                            + self._shift(device, network, variant, day)
                        )
                        name = f"{device}/{network}/{variant}"
                        value += self.broken.get((name, day), 0.0)
                        if variant == BASELINE:
                            base = value
                        if self.skips(device, day) or not self.is_measured(network, variant, day):
                            continue
                        yield Point(
                            series=name,
                            device=device,
                            network=network,
                            variant=variant,
                            harness="h",
                            day=FIRST_DAY + day,
                            time="",
                            log_time=value,
                            se_time=self.noise / 3,
                            log_speedup=math.nan if variant == BASELINE else base - value,
                            se_speedup=self.noise / 2,
                            file=self._version("file", device, network, variant, day),
                            program=self._version("program", device, network, variant, day),
                            os=self._version("os", device, network, variant, day),
                            method=self._version("method", device, network, variant, day),
                        )

    def _shift(self, device: str, network: str, variant: str, day: int) -> float:
        total = 0.0
        for shift in self.shifts:
            if day >= shift.day and shift.holds_for(device, network, variant):
                total += shift.delta * (min((day - shift.day) / shift.ramp, 1.0) if shift.ramp else 1.0)
        return total

    def _version(self, kind: str, device: str, network: str, variant: str, day: int) -> str:
        found = f"{kind}-1"
        for (of_kind, *parts), versions in self.versions.items():
            is_meant = all(p in ("", q) for p, q in zip(parts, (device, network, variant), strict=True))
            if of_kind == kind and is_meant:
                for since, version in versions:
                    if day >= since:
                        found = version
        return found
