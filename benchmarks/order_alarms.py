"""How often the check for effects of order alarms without one, and how often it finds one.

    python -m benchmarks.order_alarms [SCANS]

Each scan is of three matrices on one device, of a baseline and eight candidates, in the farm's own orders.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.machine import machine_facts
from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import BLOCK_CANDIDATES, BlockPlan
from farm.core.results.statistics.carry_over import (
    ALARM_LEVEL,
    OrderedStart,
    OrderEffect,
    OrderEffectKind,
    order_effects,
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
            candidates=scenario.candidates,
        )
        planned = list(plan.starts(0, scenario.rounds * plan.starts_of_round))
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
NULLS = {
    "iid, 2 %": Scenario(),
    "AR(1) drift": Scenario(noise=_drift),
    "AR(1) drift, 2 cells, 20 rounds": Scenario(noise=_drift, cells=2, rounds=20),
    "heat ramps": Scenario(noise=_ramp),
    "warming up": Scenario(noise=_warming),
    "bimodal cores": Scenario(noise=_bimodal),
    "heavy tails": Scenario(noise=_heavy),
    "AR(1) drift, balanced blocks": Scenario(noise=_drift, candidates=_BALANCED),
    "heat ramps, balanced blocks": Scenario(noise=_ramp, candidates=_BALANCED),
    "heavy tails, balanced blocks": Scenario(noise=_heavy, candidates=_BALANCED),
    "AR(1) drift, 50 cells": Scenario(noise=_drift, cells=50),
}
#: Large scans, and those with an effect, are fewer: shares near 0 take more than others to know.
_FEWER = 10
EFFECTS = {
    "3 % after a hot cell, iid, 2 %": Scenario(carried=math.log(1.03)),
    "3 % after a hot cell, balanced blocks": Scenario(carried=math.log(1.03), candidates=_BALANCED),
    "3 % after a hot cell, AR(1) drift": Scenario(noise=_drift, carried=math.log(1.03)),
    "3 % after a hot cell, heavy tails": Scenario(noise=_heavy, carried=math.log(1.03)),
    "the last of a block 3 % slower, iid, 2 %": Scenario(late=math.log(1.03)),
    "the last of a block 3 % slower, AR(1)": Scenario(noise=_drift, late=math.log(1.03)),
}


def _alarms(scans: list[tuple[OrderEffect, ...]]) -> list[OrderEffect]:
    return [effects[0] for effects in scans if any(effect.is_alarming for effect in effects)]


def main() -> None:
    """Print a line for each scenario."""
    scans = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(machine_facts())
    print(f"simulated: {scans} scans of {MATRICES} matrices for each figure without an effect\n")
    for name, scenario in NULLS.items():
        random = np.random.default_rng(1)
        number = scans if scenario.cells < 20 else max(1, scans // _FEWER)
        results = [scan(random, scenario) for _ in range(number)]
        alarms, likely = len(_alarms(results)), sum(r[0].p_value < ALARM_LEVEL for r in results if r)
        print(f"false alarms, {name:40}{alarms:4} of {number}   p < 0.001: {likely}", flush=True)
    for name, scenario in EFFECTS.items():
        random = np.random.default_rng(1)
        found = _alarms([scan(random, scenario) for _ in range(max(1, scans // _FEWER))])
        wanted = OrderEffectKind.PREDECESSOR if scenario.carried else OrderEffectKind.PLACE
        right = [
            e for e in found if e.kind is wanted and (e.series is None or e.series == scenario.cells - 1)
        ]
        truth = math.expm1(scenario.carried or scenario.late)
        covered = sum(e.low <= truth <= e.high for e in right) / max(1, len(right))
        mean = float(np.mean([e.effect for e in right])) if right else math.nan
        share = len(right) / max(1, scans // _FEWER)
        print(f"found, {name:47}{share:9.1%}   effect {mean:.2%}, covered {covered:.0%}", flush=True)


if __name__ == "__main__":
    main()
