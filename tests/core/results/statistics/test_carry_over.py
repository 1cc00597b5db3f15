"""Whether order shows in times: found where it does, and nowhere else."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from farm.core.matrices.blocks import balanced_order, shuffled
from farm.core.results.statistics.carry_over import order_effects
from farm.core.results.statistics.order_effect import OrderedStart, OrderEffect, OrderEffectKind

CELLS, ROUNDS = 6, 12
Shift = Callable[[int, int, int | None], float]


def nothing(_start: int, _place: int, _before: int | None) -> float:
    return 0.0


def after_the_last_cell(_start: int, _place: int, before: int | None) -> float:
    return math.log(1.03) if before == CELLS - 1 else 0.0


def late(_start: int, place: int, _before: int | None) -> float:
    return math.log(1.03) * place / (CELLS - 1)


def balanced(round: int, key: str) -> list[int]:
    """The farm's own order."""
    return balanced_order(range(CELLS), round=round, key=key)


def starts(
    shift: Shift,
    *,
    seed: int = 1,
    noise: float = 0.01,
    matrices: int = 2,
    rounds: int = ROUNDS,
    order: Callable[[int, str], list[int]] = balanced,
) -> list[OrderedStart]:
    """Starts in the farm's own order, cells far apart, each with the shift of its place in the order."""
    random = np.random.default_rng(seed)
    made: list[OrderedStart] = []
    for matrix in range(matrices):
        before: int | None = None
        for round in range(rounds):
            for place, cell in enumerate(order(round + 1, f"{seed}/{matrix}/")):
                log = cell + random.normal(0.0, noise) + shift(round * CELLS + place, place, before)
                made.append(
                    OrderedStart(
                        matrix=matrix,
                        cell=cell,
                        series=f"series {cell}",
                        block=round,
                        log=log,
                        follows=before is not None,
                    )
                )
                before = cell
    return made


def effect(found: tuple[OrderEffect, ...], kind: OrderEffectKind) -> OrderEffect:
    (own,) = [each for each in found if each.kind is kind]
    return own


def test_a_cell_that_slows_whatever_follows_it_is_named_with_how_much() -> None:
    found = order_effects(starts(after_the_last_cell))
    first = found[0]
    assert (first.kind, first.series) == (OrderEffectKind.PREDECESSOR, f"series {CELLS - 1}")
    assert first.is_alarming
    assert not first.is_over
    assert first.low < 0.03 < first.high
    assert 0.02 < first.effect < 0.04
    assert not effect(found, OrderEffectKind.PLACE).is_alarming


def test_blocks_that_get_slower_towards_their_end_show_and_alarm_where_ratios_are_moved() -> None:
    balanced = order_effects(starts(late))[0]
    assert (balanced.kind, balanced.series, balanced.count) == (OrderEffectKind.PLACE, None, 2 * ROUNDS)
    assert balanced.low < 0.03 < balanced.high
    assert balanced.p_value < 0.001
    # Each cell had each place equally often: no ratio is moved, and intervals are wider.
    assert balanced.moved == pytest.approx(0.0)
    assert not balanced.is_alarming
    assert balanced.is_over
    by_chance = order_effects(starts(much_later, order=only_shuffled))[0]
    assert (by_chance.kind, by_chance.is_alarming, by_chance.is_over) == (OrderEffectKind.PLACE, True, False)
    assert 0.01 < by_chance.moved < by_chance.effect
    assert not order_effects(starts(much_later))[0].is_alarming


def much_later(_start: int, place: int, _before: int | None) -> float:
    return math.log(1.1) * place / (CELLS - 1)


def only_shuffled(round: int, key: str) -> list[int]:
    return shuffled(range(CELLS), f"{key}{round}")


def test_the_interval_of_the_place_holds_the_truth_as_often_as_it_says() -> None:
    covered = [
        own.low < 0.03 < own.high
        for own in (
            effect(order_effects(starts(late, seed=seed, rounds=5)), OrderEffectKind.PLACE)
            for seed in range(200)
        )
    ]
    # 95 % of 200 are 190 with a deviation of 3; what cells took of the slope made this 165.
    assert 180 <= sum(covered) <= 199


@pytest.mark.parametrize(
    "shift",
    [
        nothing,
        # A device that warms up over the whole matrix, or only at its beginning.
        lambda start, _place, _before: 0.10 * start / (CELLS * ROUNDS),
        lambda start, _place, _before: 0.10 * (1 - math.exp(-start / 12)),
    ],
)
def test_noise_and_heat_over_the_matrix_are_no_effect_of_order(shift: Shift) -> None:
    found = [order_effects(starts(shift, seed=seed)) for seed in range(20)]
    assert not any(each.is_alarming for effects in found for each in effects)
    # Each of two tests at its level: few of forty are below a tenth.
    assert sum(each.p_value < 0.1 for effects in found for each in effects) <= 8


def test_a_small_effect_that_is_certain_raises_no_alarm() -> None:
    def little(_start: int, _place: int, before: int | None) -> float:
        return 0.008 if before == CELLS - 1 else 0.0

    first = order_effects(starts(little, noise=0.001))[0]
    assert first.p_value < 0.001
    assert not first.is_alarming
    assert first.is_over


def test_a_start_that_does_not_count_is_a_predecessor_all_the_same() -> None:
    made = starts(after_the_last_cell)
    hot = f"series {CELLS - 1}"
    unmeasured = [
        replace(each, log=None) if each.series == hot and number % 2 else each
        for number, each in enumerate(made)
    ]
    first = order_effects(unmeasured)[0]
    assert (first.kind, first.series, first.is_alarming) == (OrderEffectKind.PREDECESSOR, hot, True)


def test_what_was_interrupted_has_no_predecessor() -> None:
    alone = [replace(each, follows=False) for each in starts(after_the_last_cell)]
    assert [each.kind for each in order_effects(alone)] == [OrderEffectKind.PLACE]


def test_few_far_off_starts_decide_nothing() -> None:
    made = starts(nothing)
    rows = {4, 31, 77}
    broken = [
        replace(each, log=each.log + 3.0) if number in rows and each.log is not None else each
        for number, each in enumerate(made)
    ]
    assert not any(each.is_alarming for each in order_effects(broken))


def test_too_few_starts_say_nothing() -> None:
    assert order_effects(starts(after_the_last_cell, matrices=1, rounds=4)) == ()
    assert order_effects([]) == ()


def test_equal_times_are_no_effect() -> None:
    found = order_effects(starts(nothing, noise=0.0))
    assert all(each.effect == pytest.approx(0.0) and not each.is_alarming for each in found)


def test_the_same_starts_give_the_same_answer() -> None:
    assert order_effects(starts(late)) == order_effects(starts(late))
