"""The farm is killed again and again while a matrix runs: nothing is lost, and nothing counts twice."""

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from tests.chaos.scenarios.farm_killer import Killer, Moment
from tests.chaos.scenarios.scenario import Stage

pytestmark = pytest.mark.long

SEED_VARIABLE = "BENCHFARM_CHAOS_SEED"
KILLS = {
    Moment.MEASURING: 5,
    Moment.SPOOLED: 5,
    Moment.SETTLING: 5,
    Moment.COMMITTED: 3,
    Moment.ANY: 2,
}
#: Where every other kill misses its moment: a busy machine is slow to send the signal.
MOST_KILLS = 2 * sum(KILLS.values())
#: Of two cells on two phones each.
ROUNDS = 8
#: Jobs that a moment is waited for in; each of them passes all moments.
ENOUGH = 6


@pytest.fixture
def random() -> Random:
    seed = int(os.environ.get(SEED_VARIABLE, "2026"))
    print(f"{SEED_VARIABLE}={seed}")  # noqa: T201 - pytest shows it where a test fails
    return Random(seed)


@pytest.mark.timeout(600)
@pytest.mark.invariant("I4", "I5", "I8", "I10", "I12", "I13", "I17")
@pytest.mark.fault(33, 35)
def test_a_farm_killed_at_20_moments_of_a_matrix_loses_nothing_and_counts_nothing_twice(
    stage: Stage, random: Random
) -> None:
    matrices = [stage.submit(run_s=0.3, rounds=ROUNDS)]
    for killed in _kill_often(stage, Killer(stage, random), random):
        assert killed.total() <= MOST_KILLS, f"some moments cannot be hit: {killed}"
        if len(stage.ledger().unfinished()) <= ENOUGH:
            matrices.append(stage.submit(run_s=0.3, rounds=ROUNDS))
    for matrix_id in matrices:
        view = stage.farm.await_matrix(matrix_id, within_s=120)
        stage.ledger().check_jobs_succeeded(matrix_id, 4 * ROUNDS)
        assert view.jobs == 4 * ROUNDS
    stage.check_ledger()
    stage.check_spool()
    stage.check_phones()


def _kill_often(stage: Stage, killer: Killer, random: Random) -> Iterator[Counter[Moment]]:
    """Kill at all moments of KILLS, shuffled; one that was missed is tried again at the end.

    Yields what was hit so far, whenever the farm is up again.
    """
    waiting = list(Counter(KILLS).elements())
    random.shuffle(waiting)
    kills: Counter[Moment] = Counter()
    while waiting:
        moment = waiting.pop()
        hit = killer.kill_at(moment)
        kills[hit] += 1
        stage.ledger()
        if hit is not moment:
            waiting.insert(0, moment)
        stage.farm.start()
        yield kills
    assert all(kills[moment] >= count for moment, count in KILLS.items())
