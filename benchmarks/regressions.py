"""How often detection of changes is right: simulated farms with known causes, day by day.

    python -m benchmarks.regressions [SEEDS [all|FARMS-OR-KINDS [MINUTES [FIRST-SEED]]]] [-v]
    python -m benchmarks.regressions speed

Histories come from `benchmarks/farm_history.py`, changes from the farm's own function, which sees one day
after the other. A change is right where an event has the same direction, at least half of the series of both
together, and a day within a week (drifts: 45 days); a second one for the same event is wrong.
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from statistics import median

from benchmarks.change_ceiling import chance_to_find
from benchmarks.farm_changes import CHANGES, Play, nothing, versions_only
from benchmarks.farm_history import FIRST_DAY, Event, Farm, History, Simulation
from benchmarks.version_search import wilson_interval
from farm.core.results.history.changes.detect import Detector, detect
from farm.core.results.history.changes.points import BASELINE, Change, Point

_DAYS_OFF = 7
_DAYS_OFF_DRIFT = 45
_LEAST_OVERLAP = 0.5
SIZES = (0.10, 0.05, 0.03)
#: Histories that are played before the time is looked at.
_AT_ONCE = 20
_FIRST_SEED = 1000


@dataclass(slots=True)
class Counts:
    """What a scenario gave."""

    told: int = 0
    right: int = 0
    cause: int = 0
    events: dict[float, int] = field(default_factory=dict)
    found: dict[float, int] = field(default_factory=dict)
    #: How many of the events a test would find that knows all but their size.
    possible: dict[float, float] = field(default_factory=dict)
    sessions: list[int] = field(default_factory=list)
    #: Changes that were found, drifts left out, as a share of what happened.
    shares: list[float] = field(default_factory=list)
    series_months: float = 0.0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Add those of another run."""
        self.told += other.told
        self.right += other.right
        self.cause += other.cause
        for mine, theirs in ((self.events, other.events), (self.found, other.found)):
            for size, count in theirs.items():
                mine[size] = mine.get(size, 0) + count
        for size, expected in other.possible.items():
            self.possible[size] = self.possible.get(size, 0.0) + expected
        self.sessions += other.sessions
        self.shares += other.shares
        self.series_months += other.series_months
        self.seconds += other.seconds
        self.notes += other.notes

    def row(self, name: str) -> str:
        """Return a row of the table."""
        recalls = [
            f"{self.found.get(size, 0) / self.events[size]:>7.0%}" if self.events.get(size) else f"{'':>7}"
            for size in SIZES
        ]
        wrong = self.told - self.right
        return (
            f"{name:<34}{self.right / self.told if self.told else 1:>8.1%}"
            f"{''.join(recalls)}{self.cause / self.right if self.right else 1:>8.1%}"
            f"{1000 * wrong / self.series_months:>8.2f}"
            f"{median(self.sessions) if self.sessions else math.nan:>6.1f}"
            f"{median(self.shares) if self.shares else math.nan:>6.2f}{sum(self.events.values()):>8}"
            f"{sum(self.events.values()) - sum(self.found.values()):>8}"
            f"{sum(self.events.values()) - sum(self.possible.values()):>8.1f}{wrong:>7}"
        )


def covered(change: Change, history: History, since: int) -> set[str]:
    """Return the series that a change names, of those that were measured since a day until it was told."""
    wanted = {"series": change.series} if change.series is not None else change.scope
    return {cell.name for cell in history.cells} & {
        point.series
        for point in history.points
        if since <= point.day <= change.told
        and all(getattr(point, key) == value for key, value in wanted.items())
    }


def is_right(change: Change, history: History, event: Event) -> bool:
    """Return whether a change tells of an event."""
    reach = _DAYS_OFF_DRIFT if event.ramp else _DAYS_OFF
    affected = {s for s, d in event.day_by_series.items() if d <= change.told}
    if not affected or change.delta * event.delta <= 0:
        return False
    names = covered(change, history, min(change.day, event.day))
    days = [event.day_by_series[s] for s in affected & names]
    if not days or not min(days) - reach <= change.day <= max(days) + reach + event.ramp:
        return False
    return len(affected & names) >= _LEAST_OVERLAP * len(affected | names)


def observe(history: History) -> None:
    """Date events by the first session that shows them; drop those without one before and three since.

    A drift shows to a device that comes before it is half over. Two events that undo each other before a
    session shows either of them are none.
    """
    days: dict[str, list[int]] = {}
    for point in history.points:
        days.setdefault(point.series, []).append(point.day)
    for event in history.events:
        seen = {
            name: later
            for name, day in event.day_by_series.items()
            if len(later := [d for d in days.get(name, ()) if d >= day]) >= 3
            and days[name][0] < day + event.ramp // 2
        }
        event.day_by_series = {name: later[0] for name, later in seen.items()}
    seen_events = [event for event in history.events if event.day_by_series]
    history.events = [
        event
        for event in seen_events
        if not any(
            other is not event and other.day_by_series == event.day_by_series and other.delta == -event.delta
            for other in seen_events
        )
    ]


def judge(history: History, farm: Farm) -> Counts:
    """Detect, and compare with what happened."""
    counts = Counts()
    observe(history)
    started = time.process_time()
    changes = detect(history.points)
    counts.seconds = time.process_time() - started
    counts.series_months = len(history.cells) * farm.days / 30.4
    counts.told = len(changes)
    told: set[int] = set()
    for change in changes:
        match = next((e for e in history.events if id(e) not in told and is_right(change, history, e)), None)
        label = change.series or dict(change.scope)
        if match is None:
            counts.notes.append(
                f"WRONG {label} {change.cause} day {change.day - FIRST_DAY} told {change.told - FIRST_DAY}"
                f" {change.delta:+.3f} z {change.z:.1f}"
            )
            continue
        told.add(id(match))
        counts.right += 1
        counts.cause += change.cause is match.cause
        if change.cause is not match.cause:
            counts.notes.append(
                f"CAUSE {label} {change.cause} not {match.cause} day {change.day - FIRST_DAY}"
            )
        if not match.ramp:
            devices = {name.split("/")[0] for name in match.day_by_series}
            days = {
                p.day for p in history.points if match.day <= p.day <= change.told and p.device in devices
            }
            counts.sessions.append(len(days))
            counts.shares.append(change.delta / match.delta)
    for event in history.events:
        counts.events[event.size] = counts.events.get(event.size, 0) + 1
        chance = chance_to_find(event, history, farm)
        counts.possible[event.size] = counts.possible.get(event.size, 0.0) + chance
        if id(event) in told:
            counts.found[event.size] = counts.found.get(event.size, 0) + 1
        else:
            affected = sorted(event.day_by_series)
            counts.notes.append(
                f"MISSED {event.cause} {event.delta:+.3f} day {event.day - FIRST_DAY} "
                f"{len(affected)} series {affected[:4]}, possible with {chance:.0%}"
            )
    return counts


FARMS = {
    "daily": Farm(),
    "irregular": Farm(cadence=0.45, days=300),
    "weekly": Farm(devices=6, models=3, cadence=0.16, days=600),
    "heavy tails": Farm(tails=3.0, broken=0.03),
    "hot, correlated": Farm(wander=0.95, wander_size=0.04, age=0.15, ratio_correlation=0.3),
    "few devices": Farm(devices=2, models=2, variants=2, networks=2),
    "many devices": Farm(devices=30, models=6, networks=2, variants=3, days=120),
    "quiet": Farm(noise=(0.004, 0.015), wander_size=0.01),
    "noisy": Farm(noise=(0.02, 0.06), wander_size=0.03, restless=0.05),
    "two harnesses": Farm(harnesses=2, networks=4, variants=4),
    "one network": Farm(networks=1, variants=4),
    "thrice a day": Farm(per_day=3, days=120, devices=5, models=3),
    "hot sessions": Farm(hot=0.05, unequal=6.0),
    "random walk": Farm(wander_size=0.01, walk=0.005, unequal=3.0),
    "room": Farm(room=0.03, weekday=0.02, heat_in_ratio=0.1),
    "no errors": Farm(errors="none", retracted=0.1),
    "small errors": Farm(errors="small", outages=3.0, late=0.4),
    "large errors": Farm(errors="large"),
    "turnover": Farm(turnover=0.4, compared_every=3, variants=4),
    "harnesses in turn": Farm(harnesses=2, networks=4, in_turn=True),
    "plain": Farm(noise=(0.005, 0.03), wander=0.0, wander_size=0.01, age=0.02, outages=0.5),
    "plain, heat": Farm(devices=20, models=5, networks=2, noise=(0.005, 0.02), wander=0.7),
    "plain, 40 devices": Farm(devices=40, models=8, networks=2, days=120, wander=0.0, wander_size=0.01),
}
#: Farms without what makes others hard: devices, versions, drift, outages, retracted sessions.
PLAIN = ("plain", "plain, heat", "plain, 40 devices")
_LOUD, _QUIET = "all changes", "without any change"


def run(job: tuple[str, Play, float, int]) -> tuple[str, str, float, Counts]:
    """Play and judge one history."""
    farm_name, play, size, seed = job
    farm = FARMS[farm_name]
    if play in (nothing, versions_only):
        farm = replace(farm, days=365)
    sim = Simulation(farm, seed)
    play(sim, size)
    counts = judge(sim.history(), farm)
    counts.notes = [f"[{farm_name}, {play.__name__}, {size}, {seed}] {note}" for note in counts.notes]
    return farm_name, play.__name__, size, counts


#: Days of the run for speed, and the day on which a program and some files get new versions.
_SPEED_DAYS = 45
_SPEED_BREAK = 40


def slowest_day(series: int = 10_000) -> float:
    """Return the CPU seconds of the slowest day of detection over so many series, measured daily."""
    random, detector, slowest = Random(1), Detector(), 0.0
    variants = (BASELINE, "a", "b", "c", "d")
    cells = [(f"d{n // 50}", f"n{n // 5 % 10}", variants[n % 5]) for n in range(series)]
    for day in range(_SPEED_DAYS):
        is_new = day >= _SPEED_BREAK
        points = [
            Point(
                series=f"{device}/{network}/{variant}",
                device=device,
                network=network,
                variant=variant,
                harness="h",
                day=day,
                time="",
                log_time=random.gauss(2, 0.02),
                se_time=0.01,
                log_speedup=math.nan if variant == BASELINE else random.gauss(0.5, 0.03),
                se_speedup=0.01,
                file="f2" if is_new and variant == "a" else "f1",
                program="p2" if is_new else "p1",
                os="o",
            )
            for device, network, variant in cells
        ]
        started = time.process_time()
        detector.add_day(day, points)
        slowest = max(slowest, time.process_time() - started)
    return slowest


def jobs(seeds: int, words: Sequence[str], first_seed: int) -> list[tuple[str, Play, float, int]]:
    """Return the histories to play, in an order of which each part is a fair sample.

    Each has a seed of its own, so that no two have their changes on the same days.
    """
    quiet = [(f, p, 0.0) for f, p, _ in product(FARMS, (nothing, versions_only), range(seeds))]
    loud = [(f, p, z) for f, p, z, _ in product(FARMS, CHANGES, SIZES, range(seeds))]
    every = [(*job, first_seed + number) for number, job in enumerate(quiet + loud)]
    chosen = [job for job in every if not words or job[0] in words or job[1].__name__ in words]
    Random(first_seed).shuffle(chosen)
    return chosen


def goals(loud: Counts | None, quiet: Counts | None) -> Iterator[str]:
    """Yield whether each goal was met, in histories with changes and in those without any."""
    if loud is not None:
        told = median(loud.sessions) if loud.sessions else math.inf
        yield _goal("precision", loud.right, loud.told, at_least=0.95)
        for size, least in zip(SIZES, (0.95, 0.85, 0.60), strict=True):
            if loud.events.get(size):
                goal = _goal(
                    f"recall at {size:.0%}", loud.found.get(size, 0), loud.events[size], at_least=least
                )
                yield f"{goal}, possible {loud.possible[size] / loud.events[size]:.1%}"
        yield _goal("right cause", loud.cause, loud.right, at_least=0.90)
        near = sum(0.5 <= share <= 1.5 for share in loud.shares)
        yield _goal("size within a half", near, len(loud.shares), at_least=0.95)
        yield f"{'sessions until told':<34}{told:>8.1f}  at most  5  {'MET' if told <= 5 else 'MISSED'}"
    if quiet is not None:
        wrong = quiet.told - quiet.right
        rate = 1000 * wrong / quiet.series_months
        verdict = "MET" if rate <= 2 else "MISSED"
        alarms = f"{wrong} in {quiet.series_months:.0f}"
        yield f"{'alarms in 1000 series-months':<34}{rate:>8.2f}  at most  2  {alarms}  {verdict}"


def _goal(name: str, hits: int, count: int, *, at_least: float) -> str:
    low, high = wilson_interval(hits, max(count, 1))
    share = hits / max(count, 1)
    verdict = "MET" if share >= at_least else "MISSED"
    counts = f"{hits} of {count}, {low:.1%} to {high:.1%}"
    return f"{name:<34}{share:>8.1%}  at least {at_least:.0%}  {counts}  {verdict}"


def main() -> None:
    """Print the table."""
    if sys.argv[1:] == ["speed"]:
        seconds = slowest_day()
        print(f"slowest day of 10,000 series: {seconds:.1f} s of one core, at most 60 s: ", end="")
        print("MET" if seconds <= 60 else "MISSED")
        return
    arguments = [word for word in sys.argv[1:] if word != "-v"]
    seeds = int(arguments[0]) if arguments else 3
    words = arguments[1].split(",") if len(arguments) > 1 and arguments[1] != "all" else ()
    until = time.monotonic() + 60 * float(arguments[2]) if len(arguments) > 2 else math.inf
    first_seed = int(arguments[3]) if len(arguments) > 3 else _FIRST_SEED
    chosen, played = jobs(seeds, words, first_seed), 0
    totals: dict[str, Counts] = {}
    with ProcessPoolExecutor(2) as pool:
        for part in range(0, len(chosen), _AT_ONCE):
            if time.monotonic() > until:
                break
            for farm, play, size, counts in pool.map(run, chosen[part : part + _AT_ONCE]):
                played += 1
                if "-v" in sys.argv:
                    print(*counts.notes, sep="\n")
                kind = "quiet: " if not size else ""
                total = _LOUD if size else _QUIET
                names = [f"{kind}{play}", f"{kind}farm {farm}", total]
                for name in [*names, f"plain: {total}"] if farm in PLAIN else names:
                    totals.setdefault(name, Counts()).add(counts)
    print(f"{'':<34}{'precis.':>8}" + "".join(f"{f'{s:.0%}':>7}" for s in SIZES), end="")
    print(
        f"{'cause':>8}{'wrong/k':>8}{'told':>6}{'size':>6}{'events':>8}{'missed':>8}{'least':>8}{'wrong':>7}"
    )
    for name in sorted(totals):
        print(totals[name].row(name))
    print(*goals(totals.get(_LOUD), totals.get(_QUIET)), sep="\n")
    plain = totals.get(f"plain: {_LOUD}"), totals.get(f"plain: {_QUIET}")
    if any(plain):
        print("plain farms:", *goals(*plain), sep="\n")
    spent = sum(totals[name].seconds for name in (_LOUD, _QUIET) if name in totals)
    print(f"{played} of {len(chosen)} histories; {spent:.0f} s of one core")


if __name__ == "__main__":
    main()
