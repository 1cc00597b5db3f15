"""The farm is killed again and again while a matrix runs: nothing is lost, and nothing counts twice."""

import os
from collections import Counter
from random import Random

import pytest
from killer import Killer, Moment
from stage import Stage

SEED_VARIABLE = "BENCHFARM_CHAOS_SEED"
KILLS = {
    Moment.MEASURING: 5,
    Moment.SPOOLED: 5,
    Moment.SETTLING: 5,
    Moment.COMMITTED: 3,
    Moment.ANY: 2,
}
#: Of two cells on two phones each.
ROUNDS = 8


@pytest.fixture
def random() -> Random:
    seed = int(os.environ.get(SEED_VARIABLE, "2026"))
    print(f"{SEED_VARIABLE}={seed}")  # noqa: T201 - pytest shows it where a test fails
    return Random(seed)


def test_a_farm_killed_at_20_moments_of_a_matrix_loses_nothing_and_counts_nothing_twice(
    stage: Stage, random: Random
) -> None:
    matrix_id = stage.submit(run_s=0.3, rounds=ROUNDS)
    kills = _kill_often(stage, Killer(stage, random), random)
    view = stage.farm.await_matrix(matrix_id, within_s=60)
    assert all(kills[moment] >= count for moment, count in KILLS.items())
    stage.ledger().check_jobs_succeeded(matrix_id, 4 * ROUNDS)
    assert view.jobs == 4 * ROUNDS
    stage.check_ledger()
    stage.check_spool()
    stage.check_phones()


def _kill_often(stage: Stage, killer: Killer, random: Random) -> Counter[Moment]:
    """Kill at all moments of KILLS, shuffled; one that was missed is tried again at the end."""
    waiting = list(Counter(KILLS).elements())
    random.shuffle(waiting)
    kills: Counter[Moment] = Counter()
    while waiting:
        moment = waiting.pop()
        assert stage.ledger().unfinished(), f"the matrix was over before all kills: {kills}"
        hit = killer.kill_at(moment)
        kills[hit] += 1
        stage.ledger()
        if hit is not moment:
            waiting.insert(0, moment)
        stage.farm.start()
    return kills
