"""Summaries of the metrics that a harness prints besides the time."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from farm.core.results.speedup import summarize_cell
from farm.core.runs.measurement import Metric
from farm.wire.documents.results.results import MetricView


def metric_views(
    rounds: Iterable[Iterable[Metric]], names: Collection[str] | None = None
) -> tuple[MetricView, ...]:
    """Return each metric over the rounds of a cell; only those with these names, if they are given."""
    by_name: defaultdict[str, list[Metric]] = defaultdict(list)
    for metrics in rounds:
        for metric in metrics:
            if names is None or metric.name in names:
                by_name[metric.name].append(metric)
    return tuple(
        MetricView.of(metrics[-1], level=summarize_cell([metric.value for metric in metrics]))
        for metrics in by_name.values()
    )
