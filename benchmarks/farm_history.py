"""A simulated farm over months, with changes whose causes are known: for `benchmarks/regressions.py`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

from farm.core.results.history.changes.points import BASELINE, Cause, Point

#: First day of all histories.
FIRST_DAY = 739_000
#: Begins the name of a network that is measured once.
_COMPARED = "compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """The shape of a farm, and the noise of its sessions."""

    devices: int = 8
    models: int = 4
    networks: int = 3
    variants: int = 3
    days: int = 180
    #: Chance that a device has a session on a day.
    cadence: float = 1.0
    #: Standard deviation of the log time of a series in a session, drawn by series from this range.
    noise: tuple[float, float] = (0.005, 0.04)
    #: Standard deviation of a round, as a multiple of that of sessions, and rounds of a session.
    rounds: int = 10
    #: Share of broken sessions of a series, and how much slower they are at most.
    broken: float = 0.01
    broken_size: float = 0.3
    #: Degrees of freedom of the noise; 0 is normal.
    tails: float = 0.0
    #: Lag-1 correlation and standard deviation of a device's level, and its drift over a year.
    wander: float = 0.8
    wander_size: float = 0.02
    age: float = 0.05
    #: Of the noise of a ratio.
    ratio_correlation: float = 0.0
    #: Harnesses; networks are spread over them.
    harnesses: int = 1
    #: Devices that come late, and outages of a device.
    late: float = 0.1
    outages: float = 1.0
    retracted: float = 0.02
    #: Sessions of a day.
    per_day: int = 1
    #: Chance of a hot session, in which everything on the device is 3 to 12 % slower.
    hot: float = 0.0
    #: Standard deviation of what all devices share: the room.
    room: float = 0.0
    #: Standard deviation of a day's step of a random walk of each device.
    walk: float = 0.0
    #: How many times as much the most restless device wanders as the calmest.
    unequal: float = 1.0
    #: Slower on work days than at weekends.
    weekday: float = 0.0
    #: Chance that a variant comes late to the farm, and that it is retired.
    turnover: float = 0.0
    #: Each so many days, a pair of its own is measured once on each device, as `farm compare` does; 0: never.
    compared_every: int = 0
    #: Whether harnesses take turns, day by day.
    in_turn: bool = False
    #: Standard deviation, over series, of how much more or less they feel the heat of their device.
    heat_in_ratio: float = 0.0
    #: Chance of a session with three times the noise.
    restless: float = 0.0
    #: What standard errors say: "true", "none", "small" or "large".
    errors: str = "true"
    #: Whether points have ratios and versions.
    ratios: bool = True
    versions: bool = True


@dataclass(slots=True, kw_only=True)
class Event:
    """A change that happened, or one version that changed nothing (size 0)."""

    cause: Cause
    #: Relative size: .1 is 10 %.
    size: float
    #: Log change of time.
    delta: float
    #: First day, by series name. Empty for a version that changed nothing.
    day_by_series: dict[str, int] = field(default_factory=dict)
    #: Days from the first to the full change.
    ramp: int = 0

    @property
    def day(self) -> int:
        """Return the first day on any series."""
        return min(self.day_by_series.values())


@dataclass(frozen=True, slots=True)
class Cell:
    """A series of the simulated farm."""

    name: str
    device: str
    model: str
    network: str
    variant: str
    harness: str
    #: The first day on which it may be measured, and the first on which it is not any more.
    since: int = FIRST_DAY
    until: int = 2 * FIRST_DAY


@dataclass(slots=True, kw_only=True)
class History:
    """Points, and what happened."""

    points: list[Point]
    cells: Sequence[Cell]
    events: list[Event]
    #: By series: standard deviation of a session, and how much of the heat of its device it feels.
    noise: Mapping[str, float]
    feels: Mapping[str, float]
    #: By device: standard deviation of its level.
    wander: Mapping[str, float]


def is_lasting(cell: Cell) -> bool:
    """Return whether a series is measured more than once."""
    return not cell.network.startswith(_COMPARED)


class Simulation:
    """Builds one history."""

    def __init__(self, farm: Farm, seed: int) -> None:
        self.farm = farm
        self.random = Random(seed)
        self.cells = list(self._cells())
        self.events: list[Event] = []
        #: By kind and what it belongs to: days and versions.
        self._versions: dict[tuple[str, ...], list[tuple[int, str]]] = {}

    def _cells(self) -> Iterator[Cell]:
        farm = self.farm
        slots = [(network, variant) for network in range(farm.networks) for variant in range(farm.variants)]
        lives = {slot: self._life() if slot[1] and farm.turnover else () for slot in slots}
        for number in range(farm.devices):
            for network, variant in slots:
                yield self._cell(
                    number, f"n{network}", variant, f"h{network % farm.harnesses}", *lives[network, variant]
                )
        if farm.compared_every:
            for day in range(FIRST_DAY, FIRST_DAY + farm.days, farm.compared_every):
                for number, variant in product(range(farm.devices), range(2)):
                    yield self._cell(number, f"{_COMPARED}{day}", variant, "h0", day, day + 1)

    def _cell(self, number: int, network: str, variant: int, harness: str, *life: int) -> Cell:
        name = f"v{variant}" if variant else BASELINE
        model = f"m{number % self.farm.models}"
        return Cell(f"d{number}/{network}/{name}", f"d{number}", model, network, name, harness, *life)

    def _life(self) -> tuple[int, int]:
        """Return the first day of a variant, and the one on which it is retired."""
        days, turnover = self.farm.days, self.farm.turnover
        since = self.random.randrange(days // 2) if self.random.random() < turnover else 0
        until = self.random.randrange(days // 2, days) if self.random.random() < turnover else days
        return FIRST_DAY + since, FIRST_DAY + until

    def when(self) -> int:
        """Return a day with sessions before and after it."""
        return FIRST_DAY + self.random.randint(45, self.farm.days - 35)

    def delta(self, size: float) -> float:
        """Return a change of log time of that size, slower in two of three."""
        return math.log1p(size) * (1 if self.random.random() < 0.67 else -1)

    def version(self, cause: Cause, key: Sequence[str], day: int, *, named: str | None = None) -> None:
        """Give whatever the key names a new version from a day on."""
        versions = self._versions.setdefault((cause, *key), [])
        versions.append((day, named or f"{cause}-{'-'.join(key)}-{len(versions) + 2}"))
        versions.sort()

    def change(
        self,
        cause: Cause,
        size: float,
        is_in: Callable[[Cell], bool],
        *,
        day: int,
        delta: float | None = None,
        stagger: dict[str, int] | None = None,
        ramp: int = 0,
    ) -> Event:
        """Change the times of cells; `stagger` has days that a device takes longer."""
        event = Event(cause=cause, size=size, delta=self.delta(size) if delta is None else delta, ramp=ramp)
        event.day_by_series = {
            cell.name: day + (stagger or {}).get(cell.device, 0) for cell in self.cells if is_in(cell)
        }
        self.events.append(event)
        return event

    def _version_at(self, cause: Cause, keys: Sequence[Sequence[str]], day: int) -> str:
        if not self.farm.versions:
            return ""
        found = f"{cause}-{'-'.join(keys[-1])}-1"
        latest = -1
        for key in keys:
            for since, version in self._versions.get((cause, *key), ()):
                if latest <= since <= day:
                    found, latest = version, since
        return found

    def history(self) -> History:
        """Play all days."""
        farm, random = self.farm, self.random
        noise = {c.name: math.exp(random.uniform(*map(math.log, farm.noise))) for c in self.cells}
        level = {c.name: random.uniform(1.0, 5.0) for c in self.cells}
        carried = dict.fromkeys(noise, 0.0)
        by_device: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_device.setdefault(cell.device, []).append(cell)
        starts = {
            d: FIRST_DAY + (random.randint(10, 60) if random.random() < farm.late else 0) for d in by_device
        }
        away = {d: self._outages() for d in by_device}
        wander = dict.fromkeys(by_device, 0.0)
        walked = dict.fromkeys(by_device, 0.0)
        room = 0.0
        reach = math.log(farm.unequal) / 2
        restless = {d: math.exp(random.uniform(-reach, reach)) for d in by_device}
        feels = {n: 1.0 + random.gauss(0, farm.heat_in_ratio) for n in noise}
        aging = {d: random.uniform(0, farm.age) / 365 for d in by_device}
        effects: dict[str, list[tuple[int, Event]]] = {}
        for event in self.events:
            for name, day in event.day_by_series.items():
                effects.setdefault(name, []).append((day, event))
        points: list[Point] = []
        rho = farm.wander
        for day in range(FIRST_DAY, FIRST_DAY + farm.days):
            room = 0.9 * room + random.gauss(0, farm.room * math.sqrt(1 - 0.9**2))
            for device, cells in by_device.items():
                step = farm.wander_size * restless[device] * math.sqrt(1 - rho**2)
                wander[device] = rho * wander[device] + random.gauss(0, step)
                walked[device] += random.gauss(0, farm.walk)
                present = [cell for cell in cells if self._is_measured(cell, day)]
                for session in range(farm.per_day):
                    if day < starts[device] or day in away[device] or random.random() > farm.cadence:
                        continue
                    shared = wander[device] + walked[device] + room + aging[device] * (day - FIRST_DAY)
                    shared += farm.weekday * (day % 7 < 5)
                    if farm.hot and random.random() < farm.hot:
                        shared += random.uniform(0.03, 0.12)
                    scale = 3.0 if farm.restless and random.random() < farm.restless else 1.0
                    times: dict[str, float] = {}
                    for cell in present:
                        sigma, phi = noise[cell.name], farm.ratio_correlation
                        carried[cell.name] = phi * carried[cell.name] + math.sqrt(1 - phi**2) * self._noise()
                        value = level[cell.name] + feels[cell.name] * shared
                        value += scale * sigma * carried[cell.name]
                        if random.random() < farm.broken:
                            value += random.uniform(0.05, farm.broken_size)
                        for since, event in effects.get(cell.name, ()):
                            if day >= since:
                                grown = 1.0 if not event.ramp else min((day - since) / event.ramp, 1.0)
                                value += event.delta * grown
                        times[cell.name] = value
                    for lasting in (True, False):
                        together = [cell for cell in present if is_lasting(cell) is lasting]
                        time = f"{day}T{session}{'' if lasting else _COMPARED}"
                        points += self._session(day, time, together, times, noise)
        return History(
            points=points,
            cells=list(filter(is_lasting, self.cells)),
            events=[e for e in self.events if e.day_by_series],
            noise=noise,
            feels=feels,
            wander={device: farm.wander_size * factor for device, factor in restless.items()},
        )

    def _is_measured(self, cell: Cell, day: int) -> bool:
        harnesses = self.farm.harnesses
        is_due = not self.farm.in_turn or cell.harness == f"h{day % harnesses}"
        return is_due and cell.since <= day < cell.until

    def _noise(self) -> float:
        if not self.farm.tails:
            return self.random.gauss(0, 1)
        nu = self.farm.tails
        return (
            self.random.gauss(0, 1)
            / math.sqrt(self.random.gammavariate(nu / 2, 2 / nu))
            * math.sqrt(max(nu - 2, 0.5) / nu)
        )

    def _outages(self) -> set[int]:
        days: set[int] = set()
        for _ in range(3):
            if self.random.random() < self.farm.outages / 3:
                start = FIRST_DAY + self.random.randint(0, self.farm.days)
                days.update(range(start, start + self.random.randint(5, 30)))
        return days

    def _session(
        self, day: int, time: str, cells: Sequence[Cell], times: dict[str, float], noise: dict[str, float]
    ) -> Iterator[Point]:
        farm, random = self.farm, self.random
        base = {cell.network: times[cell.name] for cell in cells if cell.variant == BASELINE}
        written = {"true": 1.0, "none": math.nan, "small": 0.1, "large": 10.0}[farm.errors]
        for cell in cells:
            if random.random() < farm.retracted:
                continue
            se = noise[cell.name] / math.sqrt(farm.rounds) * random.uniform(0.7, 1.4)
            has_ratio = farm.ratios and cell.variant != BASELINE
            within = random.gauss(0, se) if cell.variant != BASELINE else 0.0
            yield Point(
                series=cell.name,
                device=cell.device,
                network=cell.network,
                variant=cell.variant,
                harness=cell.harness,
                day=day,
                time=time,
                log_time=times[cell.name] + within,
                se_time=se * written,
                log_speedup=base[cell.network] - times[cell.name] - within if has_ratio else math.nan,
                se_speedup=se * 1.4 * written if has_ratio else math.nan,
                file=self._version_at(
                    Cause.FILE,
                    [(cell.network, cell.variant), (cell.device, cell.network, cell.variant)],
                    day,
                ),
                program=self._version_at(Cause.PROGRAM, [(cell.harness,)], day),
                os=self._version_at(Cause.OS, [(cell.model,), (cell.device,)], day),
            )
