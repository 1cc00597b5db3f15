"""Two sides of a pair whose device began too differently have their block run again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from farm.core.base.ids import MatrixId
from farm.core.devices.condition import Condition
from farm.core.jobs.retry import CHRONIC_AFTER, MAX_BLOCKS
from farm.core.runs.evidence import Evidence
from farm.services.results.explanations.cells import explain_cell
from farm.wire.agents.protocol import Assignment
from tests.services.results.test_round_growth import measure, submit
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, torch_output

#: The temperature and the boot before a start, by its number from 0.
Starts = Callable[[int], tuple[float | None, str]]


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    farm.variant()
    return farm.healthy_host("phone-1")


def scripted(farm: FarmRig, starts: Starts) -> Callable[[Assignment], Evidence]:
    """Answer as a good device that began each run at a temperature and in a boot."""
    good, count = measure({}), iter(range(1_000_000))

    def answer(assignment: Assignment) -> Evidence:
        skin_c, boot_id = starts(next(count))
        before = Condition(taken_at=farm.clock.now(), skin_c=skin_c, boot_id=boot_id)
        return replace(good(assignment), before=before)

    return answer


def repeats(farm: FarmRig, matrix_id: MatrixId) -> dict[tuple[int, int], int]:
    """Jobs by round and repeat, of repeated blocks."""
    rows = farm.rows("SELECT round, repeat FROM jobs WHERE matrix_id = :id AND repeat > 0", id=matrix_id)
    return Counter((row["round"], row["repeat"]) for row in rows)


def one_hot(number: int, degrees: float) -> Starts:
    return lambda start: (30.0 + degrees * (start == number), "boot-1")


@pytest.mark.invariant("I5")
@pytest.mark.parametrize("number", [2, 3])
def test_a_pair_that_began_too_far_apart_is_measured_again_with_its_block(
    farm: FarmRig, host: HostRig, number: int
) -> None:
    matrix_id = submit(farm, warmups=1, rounds=5)
    host.run(scripted(farm, one_hot(number, 5.1)))
    # Whichever side was hot, and whichever of both ran last: each round has two starts.
    assert repeats(farm, matrix_id) == {(2, 1): 2}
    (row,) = farm.speedups(matrix_id)
    assert (row.rounds, row.excluded) == (5, 1)
    assert farm.rows("SELECT DISTINCT quality FROM measurements") == [{"quality": "valid"}]
    (event,) = farm.rows("SELECT cause FROM events WHERE kind = 'block_repeated'")
    reason = event["cause"].partition("repeat 1: ")[2]
    assert reason.startswith("the skin had 3")
    assert reason.endswith("at most 5 °C apart")
    rows = farm.rows("SELECT notices FROM measurements")
    assert sum("before the baseline" in str(row["notices"]) for row in rows) == 1
    (candidate,) = (cell for cell in farm.matrix(matrix_id).cell_list if cell.baseline is not None)
    told = [pair.reason for pair in farm.read(explain_cell, candidate.cell_id).left_out]
    assert told == [reason]


@pytest.mark.parametrize("degrees", [0.0, 5.0])
def test_sides_that_began_alike_repeat_nothing(farm: FarmRig, host: HostRig, degrees: float) -> None:
    matrix_id = submit(farm, warmups=1, rounds=5)
    host.run(scripted(farm, one_hot(2, degrees)))
    assert repeats(farm, matrix_id) == {}


def test_candidates_that_began_apart_from_each_other_repeat_nothing(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=2, rounds=1)
    rows = farm.rows("SELECT baseline_index FROM jobs JOIN cells USING (cell_id) ORDER BY job_id")
    candidates = iter([28.0, 32.0])
    temperatures = [30.0 if row["baseline_index"] is None else next(candidates) for row in rows]
    host.run(scripted(farm, lambda start: (temperatures[start], "boot-1")))
    assert repeats(farm, matrix_id) == {}


def test_a_device_that_hides_its_temperature_repeats_nothing(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds=2)
    host.run(scripted(farm, lambda start: (None if start % 2 else 45.0, "boot-1")))
    assert repeats(farm, matrix_id) == {}


def test_a_restart_between_both_sides_repeats_their_block(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds=3)
    host.run(scripted(farm, lambda start: (30.0, "boot-1" if start < 3 else "boot-2")))
    assert repeats(farm, matrix_id) == {(2, 1): 2}
    assert farm.speedups(matrix_id)[0].rounds == 3


@pytest.mark.invariant("I16")
def test_a_block_that_always_begins_apart_is_repeated_a_bounded_number_of_times(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm, warmups=1, rounds=1)
    host.run(scripted(farm, lambda start: (30.0 + 6 * (start % 2), "boot-1")))
    assert repeats(farm, matrix_id) == {(1, repeat): 2 for repeat in range(1, MAX_BLOCKS)}


@pytest.mark.invariant("I16")
def test_a_pair_that_never_began_alike_stops_having_its_blocks_run_again(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm, warmups=1, rounds=10)
    host.run(scripted(farm, lambda start: (30.0 + 6 * (start % 2), "boot-1")))
    assert sum(repeats(farm, matrix_id).values()) == 2 * CHRONIC_AFTER


def test_a_throttled_side_repeats_its_block_once(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=1, rounds=2)
    good = scripted(farm, one_hot(1, 6.0))
    count = iter(range(1000))

    def short_at_first(assignment: Assignment) -> Evidence:
        evidence = good(assignment)
        short = ended(assignment, torch_output([1000.0])).stdout
        return replace(evidence, stdout=short) if next(count) == 0 else evidence

    host.run(short_at_first)
    assert repeats(farm, matrix_id) == {(1, 1): 2}
