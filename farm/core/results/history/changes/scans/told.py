"""What was told, so that it is not told again."""

from dataclasses import dataclass, field

from farm.core.results.history.changes.choice import Moved


@dataclass(slots=True)
class Told:
    """The days of sessions, and the last change that was told of each series and device."""

    day_by_tick: list[int] = field(default_factory=lambda: [0])
    #: By the series in whose ratios it shows: the last change without a version.
    moved_by_row: dict[int, Moved] = field(default_factory=dict)
    #: By device: the last drift of its level.
    drift_by_device: dict[int, Moved] = field(default_factory=dict)
    #: By series: size and tick of the last change of its time.
    changed_by_row: dict[int, tuple[float, int]] = field(default_factory=dict)
