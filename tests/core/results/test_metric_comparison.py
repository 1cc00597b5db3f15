"""Metrics of baseline and candidate, over the blocks that count."""

import pytest

from farm.core.results.metric_comparison import compare_metrics
from farm.core.runs.measurement import Better, Metric


def metric(name: str, value: float) -> Metric:
    return Metric(name=name, value=value, unit="MB", better=Better.LOWER)


def test_medians_are_of_the_blocks_that_count_in_the_order_of_the_names() -> None:
    baseline = {
        (number, 0): [metric("peak", value), metric("init", 1)] for number, value in enumerate((1, 2, 9))
    }
    candidate = {(number, 0): [metric("peak", 5.0)] for number in range(3)}
    compared = list(
        compare_metrics(["init", "peak", "other"], [(0, 0), (1, 0)], baseline=baseline, candidate=candidate)
    )
    assert [(each.name, each.baseline, each.candidate) for each in compared] == [
        ("init", 1, None),
        ("peak", 1.5, 5.0),
    ]


def test_without_a_block_that_counts_nothing_is_compared() -> None:
    values = {(1, 0): [metric("peak", 3)]}
    assert list(compare_metrics(["peak"], [], baseline=values, candidate=values)) == []


def test_the_ratio_is_of_rounds_in_which_both_sides_have_the_metric_in_one_unit() -> None:
    baseline = {(number, 0): [metric("peak", value)] for number, value in enumerate((8.0, 2.0, 100.0))}
    candidate = {(number, 0): [metric("peak", 4.0)] for number in range(2)}
    blocks = [(0, 0), (1, 0), (2, 0)]
    (compared,) = compare_metrics(["peak"], blocks, baseline=baseline, candidate=candidate)
    # 2 and 1/2: the third round has one side only.
    assert compared.ratio == pytest.approx(1.0)
    others = {block: [Metric(name="peak", value=1.0, unit="GB", better=Better.LOWER)] for block in blocks}
    (compared,) = compare_metrics(["peak"], blocks, baseline=baseline, candidate=others)
    assert compared.ratio is None
