"""The pivot of comparisons: candidates by devices, one for each baseline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from farm.presentation.labels import device_name
from farm.presentation.speedup_blocks import (
    by_cell,
    setup_text,
    shared_settings,
    shown_baseline,
    with_short_labels,
)
from farm.wire.documents.results.speedups import SpeedupView


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """The candidates of one model, harness and matrix against one baseline: a column for each device."""

    #: Model, common words, harness and matrix; the baseline; and the settings that all rows have.
    about: str
    baseline: str
    settings: str
    devices: Sequence[str]
    #: The baseline's time on each device, in nanoseconds.
    baseline_ns: Sequence[float | None]
    #: Each candidate, and its comparison on each device; None where it was not compared there.
    rows: Sequence[tuple[str, Sequence[SpeedupView | None]]]

    @property
    def heading(self) -> str:
        """Return `mobilenet_v2, speed_benchmark_torch, matrix 3; baseline float32, with threads=2`."""
        return f"{self.about}; baseline {self.baseline}" + (
            f", with {self.settings}" if self.settings else ""
        )


def pivots(views: Sequence[SpeedupView], *, as_given: bool = False) -> Iterator[Pivot]:
    """Yield the pivots of comparisons, the newest matrix first; rows are by cell unless `as_given`."""

    def group(view: SpeedupView) -> tuple[int, str, str, str]:
        its = view.baseline_setup
        return -view.matrix_id, its.model or "", its.harness, view.baseline

    for _, own in groupby(sorted(views if as_given else by_cell(views), key=group), key=group):
        full = list(own)
        shown = with_short_labels(full)
        by_device: dict[str, dict[str, SpeedupView]] = {}
        for view in shown:
            by_device.setdefault(view.device_id, {})[view.candidate] = view
        columns: list[Mapping[str, SpeedupView]] = list(by_device.values())
        firsts = [next(iter(column.values())) for column in columns]
        yield Pivot(
            about=setup_text(full),
            baseline=shown_baseline(shown[0]),
            settings=shared_settings(shown),
            devices=[device_name(view) for view in firsts],
            baseline_ns=[view.baseline_ns for view in firsts],
            rows=[
                (label, [column.get(label) for column in columns])
                for label in dict.fromkeys(view.candidate for view in shown)
            ],
        )
