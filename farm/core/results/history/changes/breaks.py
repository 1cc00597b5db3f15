"""Series, the versions they were measured with, and breaks: the sessions at which a version changed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from farm.core.results.history.changes.points import BASELINE, Cause, Point

#: Devices that take a version within so many days of the first belong to the same break.
ROLLOUT_DAYS = 21
#: A break is tested for so many days.
_OPEN_DAYS = 150
#: A series that gets two versions within so many ticks shows the first no better than the second.
_AT_ONCE = 5


@dataclass(slots=True, kw_only=True)
class Series:
    """What is known of a series."""

    row: int
    name: str
    device: str
    device_row: int
    network: str
    variant: str
    harness: str
    file: str
    program: str
    os: str
    method: str

    @property
    def is_baseline(self) -> bool:
        """Return whether others are compared with it."""
        return self.variant == BASELINE

    @property
    def group(self) -> tuple[str, str, str]:
        """Return what it shares with its baseline."""
        return self.device, self.network, self.harness

    @property
    def slot(self) -> tuple[str, str, str]:
        """Return what devices are compared by."""
        return self.network, self.variant, self.harness


@dataclass(slots=True, kw_only=True, eq=False)
class VersionBreak:
    """A new version, and the session at which each series got it."""

    cause: Cause
    version: str
    day: int
    #: By row of the series.
    tick_by_row: dict[int, int] = field(default_factory=dict)
    day_by_row: dict[int, int] = field(default_factory=dict)
    #: Series that had it and went on to another version, also where they had it from an earlier break.
    left_by: set[int] = field(default_factory=set)
    #: Scope and size of the change that was told: series that follow are part of it.
    told_scope: Mapping[str, str] | None = None
    #: That of the version that some of these series had before, where it was not long ago.
    previous: "VersionBreak | None" = None
    told_size: float = 0.0
    #: In ratios: the baselines stayed, unless the scope names them.
    is_of_ratios: bool = False

    @property
    def open_days(self) -> int:
        """Return how long series belong to it: one that was away returns to a change that was told."""
        return _OPEN_DAYS if self.is_told else ROLLOUT_DAYS

    @property
    def is_told(self) -> bool:
        """Return whether its change was told."""
        return self.told_scope is not None

    def skipped(self, rows: Iterable[int], size: float) -> bool:
        """Return whether these series show what was told of the version before, which they skipped."""
        before = self.previous
        while before is not None and not before.is_told:
            before = before.previous
        return (
            before is not None
            and 0.5 <= size / before.told_size <= 2.0
            and not any(
                before.was_had(row) and self.tick_by_row[row] - before.tick_by_row.get(row, 0) > _AT_ONCE
                for row in rows
                if row in self.tick_by_row
            )
        )

    def was_had(self, row: int) -> bool:
        """Return whether a series had the version."""
        return row in self.tick_by_row or row in self.left_by

    def tells_of(self, series: Series) -> bool:
        """Return whether a series that gets the version now is in the scope that was told."""
        scope = self.told_scope or {}
        parts = {"device": series.device, "network": series.network, "variant": series.variant}
        if self.is_of_ratios and series.is_baseline and "variant" not in scope:
            return False
        return self.is_told and all(scope.get(key, value) == value for key, value in parts.items())

    def size_for(self, series: Series) -> float:
        """Return what was told of the version that a series gets now, and of those that it skipped."""
        before = self.previous
        skipped = 0.0 if before is None or before.was_had(series.row) else before.size_for(series)
        return skipped + (self.told_size if self.tells_of(series) else 0.0)


class Catalog:
    """All series, their groups, and the breaks that are open."""

    def __init__(self) -> None:
        self.series: list[Series] = []
        self.devices: list[str] = []
        self.rows_by_group: dict[tuple[str, str, str], list[int]] = {}
        self.rows_by_slot: dict[tuple[str, str, str], list[int]] = {}
        self._row_by_name: dict[str, int] = {}
        self._device_row: dict[str, int] = {}
        self.rows_by_device: list[list[int]] = []
        self._breaks: list[VersionBreak] = []
        #: The newest of each version, by what it belongs to.
        self._newest_break: dict[tuple[str, ...], VersionBreak] = {}

    def __len__(self) -> int:
        return len(self.series)

    def row(self, point: Point) -> int:
        """Return the row of a point's series, which may be new."""
        row = self._row_by_name.get(point.series)
        return self._add(point) if row is None else row

    def _add(self, point: Point) -> int:
        row = self._row_by_name[point.series] = len(self.series)
        device_row = self._device_row.get(point.device)
        if device_row is None:
            device_row = self._device_row[point.device] = len(self.devices)
            self.devices.append(point.device)
            self.rows_by_device.append([])
        self.rows_by_device[device_row].append(row)
        known = Series(
            row=row,
            name=point.series,
            device=point.device,
            device_row=device_row,
            network=point.network,
            variant=point.variant,
            harness=point.harness,
            file=point.file,
            program=point.program,
            os=point.os,
            method=point.method,
        )
        self.series.append(known)
        self.rows_by_group.setdefault(known.group, []).append(row)
        self.rows_by_slot.setdefault(known.slot, []).append(row)
        return row

    def siblings(self, row: int) -> list[int]:
        """Return the series of the same session that are compared with the same baseline."""
        return [
            other
            for other in self.rows_by_group[self.series[row].group]
            if other != row and not self.series[other].is_baseline
        ]

    def siblings_of(self, rows: Iterable[int]) -> list[int]:
        """Return the series that are compared with the same baselines as these, and these."""
        groups = dict.fromkeys(self.series[row].group for row in rows)
        members = [row for group in groups for row in self.rows_by_group[group]]
        return [row for row in members if not self.series[row].is_baseline]

    def baseline_of(self, row: int) -> int | None:
        """Return the baseline of a series."""
        rows = self.rows_by_group[self.series[row].group]
        return next((other for other in rows if self.series[other].is_baseline), None)

    def observe(self, row: int, point: Point, tick: int) -> list[VersionBreak]:
        """Compare the versions of a point with the previous ones; return the breaks it belongs to."""
        series = self.series[row]
        known = series.file, series.program, series.os, series.method
        if known == (point.file, point.program, point.os, point.method):
            return []
        found = []
        if point.file and point.file != series.file:
            if series.file:
                kind: tuple[str, ...] = (Cause.FILE, series.network, series.variant)
                found.append(self._join(kind, series.file, point.file, row, point.day, tick))
            series.file = point.file
        if point.program and point.program != series.program:
            if series.program:
                kind = (Cause.PROGRAM, series.harness)
                found.append(self._join(kind, series.program, point.program, row, point.day, tick))
            series.program = point.program
        if point.os and point.os != series.os:
            if series.os:
                found.append(self._join((Cause.OS,), series.os, point.os, row, point.day, tick))
            series.os = point.os
        if point.method and point.method != series.method:
            if series.method:
                kind = (Cause.METHOD, series.device)
                found.append(self._join(kind, series.method, point.method, row, point.day, tick))
            series.method = point.method
        return found

    def _join(
        self, kind: tuple[str, ...], old: str, version: str, row: int, day: int, tick: int
    ) -> VersionBreak:
        earlier, before = (self._newest_break.get((*kind, of)) for of in (version, old))
        known = earlier
        if known is None or day - known.day > known.open_days or row in known.tick_by_row:
            known = self._newest_break[*kind, version] = VersionBreak(
                cause=Cause(kind[0]), version=version, day=day
            )
            self._breaks.append(known)
            # What is told of the version later, or was of what a late device skips, is told of it, too.
            if earlier is not None and row not in earlier.tick_by_row:
                known.previous = earlier
        # The build of another model is no version before that others skipped: some series has to have had it.
        if before is not None:
            before.left_by.add(row)
            if known.previous is None and 0 < known.day - before.day <= before.open_days:
                known.previous = before
        known.tick_by_row[row] = tick
        known.day_by_row[row] = day
        return known

    def open_breaks(self, day: int) -> list[VersionBreak]:
        """Return the breaks that may still be found to have changed something; forget the others."""
        first = day - _OPEN_DAYS - ROLLOUT_DAYS
        for known in self._breaks:
            if known.day < first:
                # What a series skips is not looked for any further back.
                known.previous = None
        self._breaks = [known for known in self._breaks if known.day >= first]
        self._newest_break = {key: known for key, known in self._newest_break.items() if known.day >= first}
        return [known for known in self._breaks if not known.is_told]

    def breaks_of(self, rows: Collection[int]) -> list[VersionBreak]:
        """Return the breaks of most of these series (of files: of all), files first and the method last.

        A build may change the method.
        """
        order = (Cause.FILE, Cause.PROGRAM, Cause.OS, Cause.METHOD)
        found = [
            known
            for known in self._breaks
            if 2 * (count := sum(row in known.tick_by_row for row in rows)) > len(rows)
            and (known.cause is not Cause.FILE or count == len(rows))
        ]
        return sorted(found, key=lambda known: order.index(known.cause))

    def devices_with_versions(self, since: int) -> set[int]:
        """Return the devices of which any series got a version on a day or later."""
        return {
            self.series[row].device_row
            for known in self._breaks
            for row, day in known.day_by_row.items()
            if day >= since
        }
