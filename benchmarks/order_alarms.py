"""How often the check for effects of order alarms without one, and how often it finds one.

    python -m benchmarks.order_alarms [SCANS]

Each scan is of three matrices on one device, of a baseline and eight candidates, in the farm's own orders.
`benchmarks/calibration.py` prints its goals with fewer scans.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.calibration_row import Row, at_most, two_errors
from benchmarks.machine import machine_facts
from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import BLOCK_CANDIDATES, BlockPlan
from farm.core.results.statistics.carry_over import order_effects
from farm.core.results.statistics.order_effect import (
    ALARM_LEVEL,
    OrderedStart,
    OrderEffect,
    OrderEffectKind,
)

Logs = npt.NDArray[np.float64]
#: The deviation of each of so many starts.
Noise = Callable[[np.random.Generator, int], Logs]

MATRICES = 3
_DEVICE = DeviceId("phone-1")


def _iid(random: np.random.Generator, starts: int) -> Logs:
    return random.normal(0.0, 0.02, starts)


def _drift(random: np.random.Generator, starts: int) -> Logs:
    """AR(1) with a deviation of 5 %, of which a start shares 95 % with the next, and 1 % of its own."""
    shocks = random.normal(0.0, 0.05 * math.sqrt(1 - 0.95**2), starts)
    level = np.empty(starts)
    level[0] = random.normal(0.0, 0.05)
    for place in range(1, starts):
        level[place] = 0.95 * level[place - 1] + shocks[place]
    return level + random.normal(0.0, 0.01, starts)


def _ramp(random: np.random.Generator, starts: int) -> Logs:
    """10 % slower from the first start of a matrix to the last."""
    return 0.10 * np.arange(starts) / starts + random.normal(0.0, 0.01, starts)


def _warming(random: np.random.Generator, starts: int) -> Logs:
    """10 % slower after the first quarter of a matrix, most of it at its beginning."""
    return 0.10 * (1 - np.exp(-12 * np.arange(starts) / starts)) + random.normal(0.0, 0.01, starts)


def _bimodal(random: np.random.Generator, starts: int) -> Logs:
    """Every fifth start is put on a core that takes 20 % longer."""
    return np.where(random.random(starts) < 0.2, math.log(1.2), 0.0) + random.normal(0.0, 0.01, starts)


def _heavy(random: np.random.Generator, starts: int) -> Logs:
    """Student's t with two degrees of freedom: without a variance."""
    return 0.015 * random.standard_t(2, starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated; what is carried over, and how much slower the last of a block is than the first."""

    noise: Noise = _iid
    cells: int = 9
    rounds: int = 10
    #: None: each round is one shuffled block, as it was in matrices before there were smaller ones.
    candidates: int | None = None
    carried: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    index: int
    baseline_index: int | None
    replica: int = 1


def scan(random: np.random.Generator, scenario: Scenario) -> tuple[OrderEffect, ...]:
    """Simulate three matrices of a baseline and candidates, the last of them hot, and test their order."""
    starts: list[OrderedStart] = []
    hot = scenario.cells - 1
    cells = [_Cell(index=index, baseline_index=0 if index else None) for index in range(scenario.cells)]
    for matrix in range(MATRICES):
        plan = BlockPlan(
            cells,
            device_id=_DEVICE,
            seed=int(random.integers(1 << 31)),
            max_candidates=scenario.candidates,
        )
        planned = list(plan.starts(0, scenario.rounds * plan.start_count_per_round))
        noise = scenario.noise(random, len(planned))
        before: int | None = None
        for start, deviation in zip(planned, noise, strict=True):
            size = len(plan.blocks[start.block])
            log = float(deviation) + scenario.late * (start.place - 1) / max(1, size - 1)
            log += scenario.carried if before == hot else 0.0
            starts.append(
                OrderedStart(
                    matrix=matrix,
                    cell=start.cell_index,
                    series=start.cell_index,
                    block=(start.round, start.block),
                    # One start in fifty does not count.
                    log=None if random.random() < 0.02 else log + 0.5 * start.cell_index,
                    follows=before is not None,
                )
            )
            before = start.cell_index
    return order_effects(starts)


_BALANCED = BLOCK_CANDIDATES
#: Nothing moves a ratio: the order is without effect, or balanced against it.
NULLS = {
    "iid, 2 %, a round is one shuffled block": Scenario(),
    "AR(1) drift": Scenario(noise=_drift),
    "AR(1) drift, 2 cells, 20 rounds": Scenario(noise=_drift, cells=2, rounds=20),
    "heat ramps, 10 % over the matrix": Scenario(noise=_ramp),
    "warming up, 10 % within its first quarter": Scenario(noise=_warming),
    "heavy tails": Scenario(noise=_heavy),
    "bimodal cores": Scenario(noise=_bimodal),
    "AR(1) drift, 50 cells in one block": Scenario(noise=_drift, cells=50),
    "AR(1) drift, balanced blocks": Scenario(noise=_drift, candidates=_BALANCED),
    "heat ramps, balanced blocks": Scenario(noise=_ramp, candidates=_BALANCED),
    "heavy tails, balanced blocks": Scenario(noise=_heavy, candidates=_BALANCED),
    "heat that starts over in each block, 3 %, balanced": Scenario(late=math.log(1.03), candidates=_BALANCED),
}
#: Large scans, and those with an effect, are fewer: shares near 0 take more than others to know.
_FEWER = 10
EFFECTS = {
    "3 % after a hot cell, iid, 2 %": Scenario(carried=math.log(1.03)),
    "3 % after a hot cell, balanced blocks": Scenario(carried=math.log(1.03), candidates=_BALANCED),
    "3 % after a hot cell, AR(1) drift": Scenario(noise=_drift, carried=math.log(1.03)),
    "3 % after a hot cell, heavy tails": Scenario(noise=_heavy, carried=math.log(1.03)),
    "the last of a block 3 % slower, iid, 2 %": Scenario(late=math.log(1.03)),
    "the last of a block 3 % slower, balanced blocks": Scenario(late=math.log(1.03), candidates=_BALANCED),
    "the last of a block 3 % slower, 6 blocks": Scenario(late=math.log(1.03), cells=12, rounds=2),
    "the last of a block 3 % slower, AR(1)": Scenario(noise=_drift, late=math.log(1.03)),
    "the last of a block 20 % slower, AR(1)": Scenario(noise=_drift, late=math.log(1.2)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFigures:
    """What scans with an effect say of it."""

    scans: int
    #: That raise an alarm of it.
    found: float
    #: Of all scans, the mean estimate, and those whose interval holds the truth.
    mean: float
    covered: float


def false_alarms(scenario: Scenario, scans: int) -> tuple[int, int]:
    """Return how many scans raise an alarm, and how many are as certain, whatever the size of the effect."""
    random = np.random.default_rng(1)
    results = [scan(random, scenario) for _ in range(scans)]
    alarms = sum(any(effect.is_alarming for effect in effects) for effects in results)
    return alarms, sum(effects[0].p_value < ALARM_LEVEL for effects in results if effects)


def effect_figures(scenario: Scenario, scans: int) -> EffectFigures:
    """Simulate scans with an effect of the hot cell, or of the place."""
    random = np.random.default_rng(1)
    kind = OrderEffectKind.PREDECESSOR if scenario.carried else OrderEffectKind.PLACE
    truth = math.expm1(scenario.carried or scenario.late)
    found, own = 0, []
    for _ in range(scans):
        effects = scan(random, scenario)
        first = next(iter(effects), None)
        is_right = first is not None and first.kind is kind and first.series in (None, scenario.cells - 1)
        found += is_right and first is not None and first.is_alarming
        # Of predecessors only the one that is named has an interval.
        own += [e for e in effects if e.kind is kind and e.series in (None, scenario.cells - 1)]
    return EffectFigures(
        scans=scans,
        found=found / scans,
        mean=float(np.mean([effect.effect for effect in own])) if own else math.nan,
        covered=sum(effect.low <= truth <= effect.high for effect in own) / max(1, len(own)),
    )


def order_rows(_random: np.random.Generator, matrices: int) -> Iterator[Row]:
    """Yield the goals of the check, with a scan for fifty matrices of the other rows."""
    scans = max(10, matrices // 50)
    # Lost starts unbalance an order: with heat in each block they may move a ratio by 1 %, which is told.
    small = [scenario for scenario in NULLS.values() if scenario.cells < 20 and not scenario.late]
    alarms = sum(false_alarms(scenario, scans)[0] for scenario in small)
    checks = scans * len(small)
    what = f"alarms of the order without an effect, {checks:,} checks"
    yield at_most(what, alarms / checks, ALARM_LEVEL, allowed=two_errors(ALARM_LEVEL, checks))
    allowed = two_errors(0.05, scans)
    for name, scenario in EFFECTS.items():
        covered = effect_figures(scenario, scans).covered
        yield Row(
            what=f"coverage, {name}",
            measured=f"{covered:.1%}",
            aim=">= 93 %",
            holds=covered >= 0.93 - allowed,
        )


def main() -> None:
    """Print a line for each scenario."""
    scans = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(machine_facts())
    print(f"simulated: {scans} scans of {MATRICES} matrices for each figure without an effect\n")
    print(f"{'':50}{'checks':>8}  alarms  p < 0.001")
    for name, scenario in NULLS.items():
        number = scans if scenario.cells < 20 else max(1, scans // _FEWER)
        alarms, likely = false_alarms(scenario, number)
        print(f"{name:50}{number:8}{alarms:8}{likely:11}", flush=True)
    print(f"\n{'':50}{'checks':>8}   found  mean effect  covered")
    for name, scenario in EFFECTS.items():
        figures = effect_figures(scenario, max(1, scans // _FEWER))
        shares = f"{figures.found:8.1%}{figures.mean:13.2%}{figures.covered:9.1%}"
        print(f"{name:50}{figures.scans:8}{shares}", flush=True)


if __name__ == "__main__":
    main()
