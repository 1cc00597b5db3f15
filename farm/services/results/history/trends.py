"""List the history of series: their points with versions, and where a version is another than before."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, FactsId, SeriesId
from farm.core.base.spec_errors import closest_name, name_hint
from farm.core.devices.device import DeviceFacts
from farm.core.devices.software_version import build_names
from farm.core.errors import NotFound
from farm.core.results.history.session_point import SessionPoint, session_interval
from farm.harness.registry import harness_names
from farm.services.devices.views import device_id_named
from farm.services.results.history.chosen_cells import check_model
from farm.services.results.history.session_points import COMPUTED_AT_ONCE, pending_points
from farm.store.files.programs import list_programs
from farm.store.files.variants import list_variants
from farm.store.matrices.search import MatrixFilter, with_few_matches
from farm.store.results.history.changes import SeriesMark, marks_of_series
from farm.store.results.history.stale_points import MeasuredSession, pending_devices, pending_sessions
from farm.store.results.history.trends import (
    SeriesIdentity,
    SeriesPoint,
    TrendSeries,
    cells_of_points,
    has_points,
    identities_of_series,
    points_of_series,
    series_page,
)
from farm.store.results.provenance import facts_by_id
from farm.wire.documents.results.history import (
    MAX_HISTORY_PAGE,
    HistoryPoint,
    SeriesChange,
    SeriesHistory,
    SeriesSetup,
    VersionPart,
)

#: The versions of a point, as they are compared with those of the point before it.
_Versions = Mapping[VersionPart, object]
_NAMES_HINT = "`farm history` names them; `farm variant list` has the files"


def list_histories(
    connection: Connection,
    *,
    device: str | None = None,
    model: str | None = None,
    harness: str | None = None,
    variant: str | None = None,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
    after: SeriesId | None = None,
    limit: int = MAX_HISTORY_PAGE,
) -> list[SeriesHistory]:
    """Return a page of histories, by the numbers of their series; none at the end.

    A series that was compared with several baselines has a history for each. Duplicates of baselines (A/A)
    are left out.

    Args:
        connection: the database.
        device: only on this device: its id, its label, or the beginning of either.
        model: only of this model.
        harness: only of this harness, which may run no model.
        variant: only where this text is in the label or in the file's name, in any case.
        since: only points with a measurement at this time or later, and changes since.
        which: only points of matrices of a name or a person.
        after: only series behind this one.
        limit: at most this many series.

    Raises:
        NotFound: there is no such device, model, harness or variant.
        InvalidInput: several devices begin so.
    """
    search = _Search(connection, device, model, harness, variant, since, which)
    behind = after or SeriesId(0)
    while page := search.series(behind, limit):
        if listed := search.views(page):
            return listed
        behind = page[-1].series_id
    # Where something is found, there are such names.
    if model is not None:
        check_model(connection, model)
    if harness is not None:
        _check_harness(connection, harness)
    if variant is not None and not after:
        _check_variant(connection, variant, others=(device, model, harness, since, which))
    return []


def has_histories(
    connection: Connection,
    *,
    device: str | None = None,
    model: str | None = None,
    harness: str | None = None,
    variant: str | None = None,
    since: datetime | None = None,
    which: MatrixFilter | None = None,
    after: SeriesId,
) -> bool:
    """Tell whether `list_histories` lists any behind a series, without its points wherever that is open.

    Raises:
        NotFound: there is no such device.
        InvalidInput: several devices begin so.
    """
    search = _Search(connection, device, model, harness, variant, since, which)
    limit = 1
    while page := search.series(after, limit):
        if search.has_any(page):
            return True
        after = page[-1].series_id
        # Behind a series without a point there may be thousands.
        limit = min(2 * limit, MAX_HISTORY_PAGE)
    return False


def _check_harness(connection: Connection, harness: str) -> None:
    known = {*harness_names(), *(program.harness for program in list_programs(connection))}
    if harness not in known:
        raise NotFound(f"no harness `{harness}`", hint=name_hint(harness, known))


def _check_variant(connection: Connection, variant: str, *, others: Sequence[object]) -> None:
    """Refuse a text that is in the name of no series, whatever the other filters are."""
    if not any(others) or not list_histories(connection, variant=variant, limit=1):
        names = (own.name for own in list_variants(connection))
        known = {part for name in names for part in (name, *name.split("/"))}
        near = closest_name(variant, known)
        hint = f"did you mean `{near}`?" if near else _NAMES_HINT
        raise NotFound(f"no series has `{variant}` in its name", hint=hint)


def _matches(view: SeriesHistory, variant: str) -> bool:
    return any(variant.casefold() in (name or "").casefold() for name in (view.label, view.variant))


class _Search:
    """Which series are asked for, and which of their points count."""

    def __init__(
        self,
        connection: Connection,
        device: str | None,
        model: str | None,
        harness: str | None,
        variant: str | None,
        since: datetime | None,
        which: MatrixFilter | None,
    ) -> None:
        self._connection, self._model, self._harness = connection, model, harness
        self._variant, self._since = variant, since
        self._device_id = None if device is None else device_id_named(connection, device)
        self._which = with_few_matches(connection, which)
        #: Names and matrices select series by stored points, and these devices have others, too.
        self._pending: Collection[DeviceId] | None = None
        if variant is not None or which is not None:
            of_device = None if self._device_id is None else [self._device_id]
            self._pending = pending_devices(connection, of_device, which=self._which)

    def series(self, after: SeriesId, limit: int) -> list[TrendSeries]:
        """Return the next series behind one; those of pending devices need not match."""
        return series_page(
            self._connection,
            device_id=self._device_id,
            model=self._model,
            harness=self._harness,
            name_part=self._variant,
            which=self._which,
            except_on=self._pending or (),
            after=after,
            limit=limit,
        )

    def views(self, page: Sequence[TrendSeries]) -> list[SeriesHistory]:
        """Return the histories of series that match."""
        own = {series.device_id for series in page}
        devices = own if self._pending is None else own.intersection(self._pending)
        computed = _computed_points(self._connection, devices, self._which)
        found = _Histories(self._connection, page, computed, self._since, self._which).views()
        return [view for view in found if self._variant is None or _matches(view, self._variant)]

    def has_any(self, page: Sequence[TrendSeries]) -> bool:
        """Tell whether there are `views` of series."""
        pending = self._pending
        if pending is None:
            pending = pending_devices(self._connection, {series.device_id for series in page})
        # The name of a history is that of its newest point.
        stored = [own for own in page if self._variant is None and own.device_id not in pending]
        if stored and has_points(
            self._connection, [own.series_id for own in stored], since=self._since, which=self._which
        ):
            return True
        return any(self.views([own]) for own in page if own not in stored)


class _Histories:
    """The histories of some series, read by one statement for each table."""

    def __init__(
        self,
        connection: Connection,
        page: Sequence[TrendSeries],
        computed: Mapping[MeasuredSession, Sequence[SessionPoint]],
        since: datetime | None,
        which: MatrixFilter | None,
    ) -> None:
        self._page = {own.series_id: own for own in page}
        measured = _current_points(connection, self._page, computed, since, which)
        self._points: defaultdict[tuple[SeriesId, SeriesId | None], list[SeriesPoint]] = defaultdict(list)
        for point in measured:
            self._points[point.series_id, point.baseline_series_id].append(point)
        baselines = {series_id for _, series_id in self._points if series_id is not None}
        self._identities = _identities(connection, self._page, baselines)
        facts_ids = {point.facts_id for point in measured if point.facts_id is not None}
        self._facts = facts_by_id(connection, sorted(facts_ids))
        self._changes: defaultdict[tuple[SeriesId, SeriesId | None], list[SeriesMark]] = defaultdict(list)
        cells = {point.cell_id for point in measured}
        for mark in marks_of_series(connection, self._page):
            # A series may have joined a change long after it began.
            if since is None or mark.since_at >= since or mark.cell_id in cells:
                self._changes[mark.series_id, mark.baseline_series_id].append(mark)

    def views(self) -> Iterator[SeriesHistory]:
        """Yield the histories in the order of series."""
        names = self._build_names()
        for series_id, baseline_id in sorted(self._points, key=lambda key: (key[0], key[1] or 0)):
            measured = self._points[series_id, baseline_id]
            own, newest = self._page[series_id], measured[-1]
            yield SeriesHistory.of(
                own,
                own.device,
                newest,
                **self._identities[series_id].setup(),
                baseline=newest.baseline_label if baseline_id is not None else None,
                baseline_setup=self._baseline_setup(newest),
                points=tuple(self._point_views(measured, names)),
                changes=tuple(SeriesChange.of(mark) for mark in self._changes[series_id, baseline_id]),
            )

    def _baseline_setup(self, newest: SeriesPoint) -> SeriesSetup | None:
        if newest.baseline_series_id is None:
            return None
        identity = self._identities[newest.baseline_series_id]
        return SeriesSetup(**identity.setup(), variant=newest.baseline_variant)

    def _build_names(self) -> dict[FactsId, str]:
        by_device: defaultdict[DeviceId, dict[FactsId, DeviceFacts]] = defaultdict(dict)
        for measured in self._points.values():
            for point in measured:
                if point.facts_id is not None:
                    by_device[point.device_id][point.facts_id] = self._facts[point.facts_id]
        return {
            facts_id: name for facts in by_device.values() for facts_id, name in build_names(facts).items()
        }

    def _point_views(
        self, measured: Iterable[SeriesPoint], names: Mapping[FactsId, str]
    ) -> Iterator[HistoryPoint]:
        before: _Versions | None = None
        for point in measured:
            os = None if point.facts_id is None else names[point.facts_id]
            versions = _versions(point, os)
            yield _point_view(
                point,
                os=os,
                android=None if point.facts_id is None else self._facts[point.facts_id].android,
                changed=() if before is None else _changed(before, versions),
            )
            before = versions


def _identities(
    connection: Connection, page: Mapping[SeriesId, TrendSeries], baselines: Iterable[SeriesId]
) -> dict[SeriesId, SeriesIdentity]:
    """Return what the series of a page and their baselines run."""
    identities = {series_id: own.identity for series_id, own in page.items()}
    others = [series_id for series_id in baselines if series_id not in page]
    return identities | identities_of_series(connection, others) if others else identities


def _computed_points(
    connection: Connection, device_ids: Collection[DeviceId], which: MatrixFilter | None
) -> Mapping[MeasuredSession, Sequence[SessionPoint]]:
    """Return the points of the newest pending sessions of devices."""
    if not device_ids:
        return {}
    newest = pending_sessions(connection, device_ids, which=which, newest=COMPUTED_AT_ONCE)
    return pending_points(connection, newest)


def _current_points(
    connection: Connection,
    series: Mapping[SeriesId, TrendSeries],
    computed: Mapping[MeasuredSession, Sequence[SessionPoint]],
    since: datetime | None,
    which: MatrixFilter | None,
) -> list[SeriesPoint]:
    """Return the points of series that count, oldest first: the stored ones, and those that were computed."""
    stored = points_of_series(connection, series, since=since, which=which)
    due = [
        point
        for points in computed.values()
        for point in points
        if point.series_id in series
        and point.values.rounds
        and point.replica == 1
        and (since is None or point.ended_at >= since)
    ]
    cells = cells_of_points(connection, [point.cell_id for point in due]) if due else {}
    kept = [point for point in stored if (point.matrix_id, point.device_id) not in computed]
    measured = [*kept, *(SeriesPoint.of(point, cells[point.cell_id]) for point in due)]
    return sorted(measured, key=lambda point: (point.ended_at, point.cell_id))


def _versions(point: SeriesPoint, os: str | None) -> _Versions:
    versions: dict[VersionPart, object] = {
        VersionPart.FILE: point.variant_digest,
        VersionPart.PROGRAM: point.program_digest,
    }
    if point.baseline_series_id is not None:
        versions[VersionPart.BASELINE_FILE] = point.baseline_variant_digest
        versions[VersionPart.BASELINE_PROGRAM] = point.baseline_program_digest
    return {**versions, VersionPart.OS: os, VersionPart.CONTROLS: point.control_level}


def _changed(before: _Versions, versions: _Versions) -> tuple[VersionPart, ...]:
    return tuple(part for part, version in versions.items() if before[part] != version)


def _point_view(
    point: SeriesPoint, *, os: str | None, android: str | None, changed: tuple[VersionPart, ...]
) -> HistoryPoint:
    speedup = None if point.baseline_ns is None else point.baseline_ns / point.time_ns
    low, high = session_interval(speedup, se_speedup=point.se_speedup, rounds=point.rounds)
    is_compared = point.baseline_series_id is not None
    return HistoryPoint.of(
        point,
        speedup=speedup,
        ci_low=low,
        ci_high=high,
        log_time=math.log(point.time_ns),
        log_speedup=None if speedup is None else math.log(speedup),
        baseline_variant_digest=point.baseline_variant_digest if is_compared else None,
        baseline_program_digest=point.baseline_program_digest if is_compared else None,
        os=os,
        android=android,
        changed=changed,
    )
