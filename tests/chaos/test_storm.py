"""Storms of faults: whatever is killed, stopped, cut or lost, the farm's books are right in the end."""

from pathlib import Path

import pytest
from arena import set_arena
from schedule import schedule
from storm import Storm

FAULTS = 30


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1])
def test_after_a_storm_nothing_is_lost_nothing_doubled_and_nothing_invented(
    tmp_path: Path, seed: int
) -> None:
    with set_arena(tmp_path) as arena:
        summary = Storm(arena, schedule(seed, FAULTS, arena.cast), tell=print).play()
    print("\n".join(summary.lines()))  # noqa: T201 - pytest shows it where a test fails
    assert summary.jobs["succeeded"] > 0
