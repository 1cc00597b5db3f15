"""Detection of changes keeps its promises on simulated farms, and its time."""

import pytest

from benchmarks.farm_changes import (
    Play,
    base_file,
    device_reverted,
    device_variants,
    drift_device_variants,
    drift_variant,
    file_change,
    os_and_program,
    os_one_device,
    program_network,
    program_variants,
    versions_only,
)
from benchmarks.regressions import Counts, run, slowest_day

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def total(*jobs: tuple[str, Play, float, int]) -> Counts:
    counts = Counts()
    for job in jobs:
        counts.add(run(job)[3])
    return counts


def test_a_year_of_versions_that_change_nothing_gives_at_most_two_alarms_in_1000_series_months() -> None:
    counts = total(*(("daily", versions_only, 0.0, seed) for seed in (31, 32)))
    assert counts.told <= 2 * counts.series_months / 1000, counts.notes


@pytest.mark.parametrize("play", [file_change, base_file, program_variants, os_and_program])
def test_changes_of_versions_are_found_with_their_cause_within_five_sessions(play: Play) -> None:
    counts = total(*(("daily", play, size, 41) for size in (0.1, 0.05)))
    assert counts.right == counts.cause == 2, counts.notes
    assert max(counts.sessions) <= 5


@pytest.mark.parametrize(
    ("farm", "play", "size", "seed"),
    [
        # Its variants drift so quickly that a later part of it is a step.
        ("no errors", drift_device_variants, 0.10, 50993),
        # Most series of a device moved, and with them its level.
        ("two harnesses", device_variants, 0.10, 50609),
        # Hot sessions follow each other.
        ("hot sessions", device_reverted, 0.10, 50795),
        # By chance, the level of a device has a step of 4.6 standard errors.
        ("hot sessions", program_variants, 0.10, 730077),
        # After 17 sessions, what levels wander by seems less than it is.
        ("one network", os_one_device, 0.05, 30002130),
    ],
)
def test_a_change_is_not_told_twice_nor_without_need(farm: str, play: Play, size: float, seed: int) -> None:
    counts = total((farm, play, size, seed))
    assert counts.told == counts.right, counts.notes


def test_a_build_of_one_device_is_found_among_hot_sessions() -> None:
    counts = total(("hot sessions", os_one_device, 0.10, 30002507))
    assert counts.told == counts.right == counts.cause == 1, counts.notes


def test_a_day_of_ten_thousand_series_takes_less_than_a_minute_of_one_core() -> None:
    assert slowest_day() < 60


def test_a_build_of_one_device_is_told_though_its_level_wandered_back_after_it() -> None:
    counts = total(("daily", os_one_device, 0.05, 6_100_000))
    assert counts.right == counts.cause == counts.told == 1, counts.notes


@pytest.mark.parametrize(
    ("farm", "play", "size", "seed"),
    [
        # Each series of a variant drifts on another device.
        ("thrice a day", drift_variant, 0.05, 52000866),
        # A device gets the program 26 days after the others.
        ("weekly", program_network, 0.03, 52000210),
        # What was compared on one day alone says nothing of the level of its device.
        ("turnover", device_variants, 0.10, 54001330),
    ],
)
def test_what_moves_together_is_told_once(farm: str, play: Play, size: float, seed: int) -> None:
    counts = total((farm, play, size, seed))
    assert counts.right == counts.cause == counts.told == 1, counts.notes
