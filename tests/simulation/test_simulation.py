"""Seeded trouble between farm and agents, in virtual time: no promise breaks, and in peace all work ends.

`.venv/bin/python -m tests.simulation SEED` replays a seed with its trace; `make simulate` plays many.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.run import Event, play
from tests.support.database.postgres import PostgresServer
from tests.support.farm.service_fixture import FarmRig
from tests.support.session.tiers import quick_first

# A machine that is busy with everything else takes long for what is seconds' work.
pytestmark = pytest.mark.timeout(1200)

SEEDS = range(4)
#: Played on both databases, to compare.
ALIKE = (100,)
TROUBLED_S = 300.0


@pytest.mark.invariant("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10")
@pytest.mark.invariant("I11", "I12", "I13", "I14", "I16", "I17", "I18", "I20", "I21")
@pytest.mark.fault(1, 2, 3, 4, 22, 23, 24, 25, 27, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 43)
@pytest.mark.parametrize("seed", quick_first(SEEDS))
def test_whatever_goes_wrong_no_promise_breaks_and_in_peace_all_work_ends(
    seed: int, any_database_url: str, tmp_path: Path
) -> None:
    played(any_database_url, tmp_path, seed, troubled_s=TROUBLED_S)


@pytest.mark.invariant("I20")
@pytest.mark.parametrize("seed", ALIKE)
def test_the_same_seed_gives_the_same_events_on_both_databases(
    seed: int, postgres: PostgresServer, tmp_path: Path
) -> None:
    with postgres.database("migrated") as name:
        theirs = played(postgres.url(name), tmp_path / "postgresql", seed, troubled_s=150, is_comparable=True)
    ours = played(None, tmp_path / "sqlite", seed, troubled_s=150, is_comparable=True)
    for there, here in zip(theirs, ours, strict=False):
        assert there == here
    assert len(theirs) == len(ours)


@pytest.mark.long
def test_a_seed_replays_itself(tmp_path: Path) -> None:
    first, second = (played(None, tmp_path / name, 7, troubled_s=120) for name in ("first", "second"))
    assert first == second


def played(url: str | None, folder: Path, seed: int, **how: Any) -> list[Event]:
    """The events of a seed."""
    folder.mkdir(exist_ok=True)
    rig = FarmRig(folder, url)
    try:
        return play(rig, folder, seed, **how).events
    finally:
        rig.close()
