"""Storms of faults: whatever is killed, stopped, cut or lost, the farm's books are right in the end."""

from pathlib import Path

import pytest

from tests.chaos.faults.schedule import schedule
from tests.chaos.run import Storm
from tests.chaos.testbed.testbed import Arena, set_arena
from tests.support.database.postgres import PostgresServer

pytestmark = pytest.mark.long

#: About a minute on a quiet machine with two cores, each; `make chaos` plays longer ones.
FAULTS = 30
#: Above the bounds of all waits: to start, to rage, to come to rest, and to end what does not end by itself.
_LIMIT_S = 900


def _ride_out(arena: Arena, seed: int) -> None:
    # pytest shows what is printed where a test fails.
    print(f"again: make chaos SEED={seed} FAULTS={FAULTS} DATABASE={arena.cast.database}")  # noqa: T201
    summary = Storm(arena, schedule(seed, FAULTS, arena.cast), tell=print).play()
    print("\n".join(summary.lines()))  # noqa: T201
    assert summary.jobs["succeeded"] > 0
    assert summary.met.total() > 0


@pytest.mark.timeout(_LIMIT_S)
@pytest.mark.invariant(
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I12", "I13", "I14", "I16", "I17", "I19"
)
@pytest.mark.fault(1, 3, 4, 6, 7, 8, 9, 10, 11, 13, 16, 17, 22, 23, 24, 25, 26)
@pytest.mark.fault(31, 32, 33, 34, 35, 37, 38, 39, 40)
def test_after_a_storm_nothing_is_lost_nothing_doubled_and_nothing_invented(tmp_path: Path) -> None:
    with set_arena(tmp_path) as arena:
        _ride_out(arena, seed=1)


@pytest.mark.timeout(_LIMIT_S)
@pytest.mark.invariant(
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I12", "I13", "I14", "I16", "I17", "I19"
)
@pytest.mark.fault(1, 3, 4, 6, 7, 8, 9, 10, 11, 13, 16, 17, 22, 23, 24, 25, 26)
@pytest.mark.fault(31, 32, 33, 34, 35, 37, 38, 39, 43)
def test_two_farm_processes_on_postgresql_ride_out_a_storm_as_one(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    with (
        postgres.database() as name,
        set_arena(tmp_path, farms=2, database_url=postgres.url(name)) as arena,
    ):
        _ride_out(arena, seed=2)
