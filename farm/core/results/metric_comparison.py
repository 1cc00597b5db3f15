"""Comparison of the metrics that a matrix names, over the rounds of a speedup."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from farm.core.results.pairing import BlockKey
from farm.core.runs.measurement import Better, Metric

#: The metrics of one cell.
MetricsByBlock = Mapping[BlockKey, Sequence[Metric]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of baseline and candidate: medians over the rounds that count, without a verdict."""

    name: str
    unit: str
    better: Better
    #: None where the harness did not print it.
    baseline: float | None
    candidate: float | None
    #: Baseline over candidate, geometric mean over rounds in which both have it; None without such a round.
    ratio: float | None = None


def compare_metrics(
    names: Sequence[str],
    blocks: Sequence[BlockKey],
    *,
    baseline: MetricsByBlock,
    candidate: MetricsByBlock,
) -> Iterator[MetricComparison]:
    """Yield the comparison of each named metric that one side printed.

    Args:
        names: the metrics, in the order of the result.
        blocks: those that count.
        baseline: the metrics of the one cell.
        candidate: those of the other.
    """
    for name in names:
        sides = [
            [metric for block in blocks for metric in side.get(block, ()) if metric.name == name]
            for side in (baseline, candidate)
        ]
        if printed := [*sides[1], *sides[0]]:
            yield MetricComparison(
                name=name,
                unit=printed[0].unit,
                better=printed[0].better,
                baseline=_median(sides[0]),
                candidate=_median(sides[1]),
                ratio=_paired_ratio(name, blocks, baseline, candidate),
            )


def _paired_ratio(
    name: str, blocks: Sequence[BlockKey], baseline: MetricsByBlock, candidate: MetricsByBlock
) -> float | None:
    pairs = [
        (first.value, second.value)
        for block in blocks
        for first in baseline.get(block, ())
        for second in candidate.get(block, ())
        if first.name == second.name == name and first.unit == second.unit
    ]
    ratios = [first / second for first, second in pairs if first > 0 and second > 0]
    return geometric_mean(ratios) if ratios else None


def _median(metrics: Sequence[Metric]) -> float | None:
    return median(metric.value for metric in metrics) if metrics else None
