"""What a search for the version that changed a time costs, and how often it blames the wrong one.

    python -m benchmarks.version_search [SEARCHES]

The farm's own functions decide (pairing, speedup, looks, search). Each start takes the time of its version
times a normal deviation in logarithms. In each session, each version deviates from itself by another one, as
sessions do. One version changes the time for itself and for all behind it; some versions cannot run.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

from benchmarks.simulated_start import simulated_start
from farm.core.matrices.rounds import SequentialRounds
from farm.core.results.history.bisect import (
    LogChange,
    VersionResult,
    judge_version,
    narrow,
    sought_half_width,
)
from farm.core.results.looks.basis import compare_by_basis
from farm.core.results.looks.look import Look, missing_rounds, take_look
from farm.core.results.pairing import JoinedValue, paired_rounds
from farm.core.results.speedup import Speedup, speedup
from farm.core.results.statistics.interval import CONFIDENCE
from farm.core.runs.measurement import Verdict

VERSIONS = 64
NOISE = 0.02
#: What the aims allow.
MOST_WRONG, MOST_COMPARISONS = 0.05, 7
_DIFFERS = (Verdict.FASTER, Verdict.FASTER_SIZE_OPEN, Verdict.SLOWER, Verdict.SLOWER_SIZE_OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A simulated phone, and what changed."""

    name: str
    #: By how much the bad versions are slower, as a fraction; negative: quicker.
    slowdown: float
    noise: float = NOISE
    #: Deviation of a version from itself in a session, in logarithms.
    session_noise: float = 0.0
    #: Share of versions between the ends that cannot run.
    broken: float = 0.0

    @property
    def is_clear(self) -> bool:
        """Return whether each version can run and is decided by the rounds that a comparison has."""
        return min(abs(self.slowdown), 0.05) > 2 * self.noise and not self.broken and not self.session_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEnd:
    """The end of one simulated search."""

    #: The range that it names; None where it finds no difference of the ends.
    named: range | None
    #: None where nothing changed.
    truth: int | None
    comparisons: int
    starts: int

    @property
    def is_wrong(self) -> bool:
        """Return whether it blames a version, or a range, without the one that changed the time."""
        if self.truth is None:
            return self.named is not None and len(self.named) < VERSIONS - 1
        return self.named is not None and self.truth not in self.named

    @property
    def is_exact(self) -> bool:
        """Return whether it blames the version."""
        return self.truth is not None and self.named == range(self.truth, self.truth + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectFigures:
    """Shares of simulated searches."""

    searches: int
    wrong: float
    #: The interval of the share that blames wrongly (Wilson, 95 %).
    wrong_low: float
    wrong_high: float
    exact: float
    #: Ranges of several versions with the right one among them.
    ranges: float
    #: The ends were not found to differ.
    nothing: float
    comparisons: float
    most_comparisons: int
    starts: float

    def row(self) -> str:
        """Return the figures as a row of a table."""
        return (
            f"{self.wrong:>6.1%}  {self.wrong_low:>5.1%} to {self.wrong_high:>5.1%}  {self.exact:>6.1%}"
            f"  {self.ranges:>6.1%}  {self.nothing:>7.1%}"
            f"  {self.comparisons:>6.1f}  {self.most_comparisons:>4}  {self.starts:>6.0f}"
        )


def simulate_searches(scenario: Scenario, *, searches: int, seed: int = 1) -> BisectFigures:
    """Search again and again, each time for another version."""
    random = Random(f"{seed} {scenario}")
    ends = [_search(scenario, random) for _ in range(searches)]
    low, high = wilson_interval(sum(end.is_wrong for end in ends), searches)
    found = [end for end in ends if end.named is not None]
    return BisectFigures(
        searches=searches,
        wrong=fmean(end.is_wrong for end in ends),
        wrong_low=low,
        wrong_high=high,
        exact=fmean(end.is_exact for end in ends),
        ranges=fmean(end.named is not None and not end.is_exact and not end.is_wrong for end in ends),
        nothing=fmean(end.named is None for end in ends),
        comparisons=fmean(end.comparisons for end in found) if found else 0.0,
        most_comparisons=max((end.comparisons for end in found), default=0),
        starts=fmean(end.starts for end in ends),
    )


def wilson_interval(hits: int, count: int, *, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, spread = hits / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    reach = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _search(scenario: Scenario, random: Random) -> SearchEnd:
    """Drive a search as `farm bisect` does."""
    truth = random.randrange(1, VERSIONS) if scenario.slowdown else None
    broken = {place for place in range(1, VERSIONS - 1) if random.random() < scenario.broken}
    session = partial(_session, scenario, random, truth)
    (first,), starts = session([VERSIONS - 1], SequentialRounds())
    if first.verdict not in _DIFFERS:
        return SearchEnd(named=None, truth=truth, comparisons=1, starts=starts)
    change = _log_change(first)
    changes, comparisons, results = [change.value], 1, dict[int, VersionResult]()
    while (place := narrow(VERSIONS, results).next) is not None:
        comparisons += 1
        if place in broken:
            results[place] = VersionResult.NOT_RUN
            continue
        plan = SequentialRounds(until=sought_half_width(changes))
        (version, bad), count = session([place, VERSIONS - 1], plan)
        starts += count
        changes.append(_log_change(bad).value)
        results[place] = judge_version(_log_change(version), _log_change(bad), change=change.value)
    result = narrow(VERSIONS, results)
    named = range(result.last_good + 1, result.first_bad + 1)
    return SearchEnd(named=named, truth=truth, comparisons=comparisons, starts=starts)


def _log_change(result: Speedup) -> LogChange:
    change = LogChange.of_speedup(result.ratio, result.ci_low, result.ci_high)
    assert change is not None
    return change


def _session(
    scenario: Scenario, random: Random, truth: int | None, places: Sequence[int], plan: SequentialRounds
) -> tuple[list[Speedup], int]:
    """Return what a matrix of the good end and some versions says of each, and its starts."""
    levels = {
        place: (math.log1p(scenario.slowdown) if truth is not None and place >= truth else 0.0)
        + random.gauss(0.0, scenario.session_noise)
        for place in (0, *places)
    }
    values: dict[int, list[JoinedValue]] = {place: [] for place in levels}
    looks: dict[int, list[Look]] = {place: [] for place in places}
    going, rounds = set(places), plan.at_least
    while going:
        for place in (0, *sorted(going)):
            values[place] += _starts(random, len(values[place]) + 1, rounds, levels[place], scenario.noise)
        missing = []
        for place in sorted(going):
            compare = partial(_compare, values, place)
            look = take_look(plan, looks[place], compare, rounds=rounds)
            if look is not None:
                looks[place].append(look)
            if look is not None and look.stopped is not None:
                going.discard(place)
            else:
                usable = compare(CONFIDENCE).rounds if look is None else look.usable
                missing.append(missing_rounds(plan, looks[place], usable))
        rounds = min(plan.at_most, rounds + min(missing, default=0))
    results = [
        compare_by_basis(partial(_compare, values, place), plan, looks[place], is_complete=True)[0]
        for place in places
    ]
    return results, sum(map(len, values.values()))


def _starts(random: Random, first: int, last: int, level: float, noise: float) -> Iterator[JoinedValue]:
    return (simulated_start(round, level + random.gauss(0.0, noise)) for round in range(first, last + 1))


def _compare(values: Mapping[int, Sequence[JoinedValue]], place: int, confidence: float) -> Speedup:
    count = len(values[place])
    pairs, excluded = paired_rounds(values[0][:count], values[place])
    return speedup(pairs, excluded=excluded, confidence=confidence)


SCENARIOS = (
    Scenario(name="3 %", slowdown=0.03),
    Scenario(name="5 %", slowdown=0.05),
    Scenario(name="10 %", slowdown=0.10),
    Scenario(name="100 %", slowdown=1.0),
    Scenario(name="5 % quicker", slowdown=-0.05),
    Scenario(name="5 %, one of ten cannot run", slowdown=0.05, broken=0.1),
    Scenario(name="5 %, half of them cannot run", slowdown=0.05, broken=0.5),
    Scenario(name="3 %, sessions differ by 0.5 %", slowdown=0.03, session_noise=0.005),
    Scenario(name="5 %, sessions differ by 1 %", slowdown=0.05, session_noise=0.01),
    Scenario(name="10 %, sessions differ by 2 %", slowdown=0.1, session_noise=0.02),
    Scenario(name="10 %, 10 % noise", slowdown=0.1, noise=0.1),
    Scenario(name="no difference", slowdown=0.0),
)


def main(searches: int) -> None:
    """Print a table, and whether the aims are met."""
    is_met = True
    print(f"{searches} searches each among {VERSIONS} versions, noise of a start {NOISE:.0%}")
    heading = (
        f"{'wrong':>6}  {'(interval)':>14}  {'exact':>6}  {'range':>6}  {'nothing':>7}"
        f"  {'comp.':>6}  {'most':>4}  {'starts':>6}"
    )
    print(f"{'':30}  {heading}")
    for scenario in SCENARIOS:
        figures = simulate_searches(scenario, searches=searches)
        print(f"{scenario.name + ' *' * scenario.is_clear:30}  {figures.row()}", flush=True)
        is_met &= figures.wrong <= MOST_WRONG
        is_met &= not scenario.is_clear or round(figures.comparisons, 1) <= MOST_COMPARISONS
    goal = f"at most {MOST_WRONG:.0%} wrong, and where *, {MOST_COMPARISONS} comparisons on average"
    print(f"{'MET' if is_met else 'MISSED'}: {goal}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
