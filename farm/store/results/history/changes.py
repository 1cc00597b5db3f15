"""Changes that are recorded: written by detection, listed, and decided on by people."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, SeriesId
from farm.core.results.history.confirmation import ConfirmationOutcome
from farm.core.results.history.recorded_change import (
    ChangeCause,
    ChangedSeries,
    ChangeState,
    FoundChange,
    KnownChange,
    RecordedChange,
    SeriesPair,
)
from farm.database.rows import find_record, is_key_among, is_key_listed, to_record
from farm.database.tables import changed_series, changes, confirmations, literal, series
from farm.database.transaction import Tx
from farm.store.matrices.search import MatrixFilter
from farm.store.results.history.trends import SeriesIdentity, is_measured_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Which changes are listed."""

    since: datetime | None = None
    device_id: DeviceId | None = None
    model: str | None = None
    cause: ChangeCause | None = None
    state: ChangeState | None = None
    #: Only those that a series shows which a matrix of this name or person measured.
    matrices: MatrixFilter | None = None
    #: False: only those that made something slower, and that the points still show.
    all: bool = False


#: Old and new were measured side by side and do not show it. A cause that was found later was not.
_IS_REFUTED = sa.and_(
    changes.c.cause.in_([literal(ChangeCause.FILE), literal(ChangeCause.PROGRAM)]),
    sa.exists()
    .where(
        confirmations.c.change_id == changes.c.change_id,
        confirmations.c.outcome == literal(ConfirmationOutcome.NOT_CONFIRMED),
    )
    .correlate(changes),
)
#: The cause by all that is known: what is refuted is noise, unless another version began with it.
_known_cause: sa.ColumnElement[str] = sa.case(
    (
        sa.and_(_IS_REFUTED, sa.func.json_array_length(changes.c.versions) > 1),
        literal(ChangeCause.UNKNOWN),
    ),
    (sa.or_(_IS_REFUTED, changes.c.is_passing), literal(ChangeCause.NOISE)),
    else_=changes.c.cause,
)
_RECORDED = (
    *(column for column in changes.c if column is not changes.c.cause),
    changes.c.cause.label("found_cause"),
    _known_cause.label("cause"),
)


def recorded_changes() -> sa.Select[Any]:
    """Return the query of all changes as they are recorded."""
    return sa.select(*_RECORDED)


def known_changes(connection: Connection, *, since: datetime | None) -> list[KnownChange]:
    """Return what is recorded of changes that began at a time or later, or of all."""
    query = sa.select(changes)
    if since is not None:
        query = query.where(changes.c.since_at >= since)
    rows = connection.execute(query.order_by(changes.c.change_id)).all()
    pairs: defaultdict[int, set[SeriesPair]] = defaultdict(set)
    columns = changed_series.c.change_id, changed_series.c.series_id, changed_series.c.baseline_series_id
    of_these = is_key_among(connection, changed_series.c.change_id, [row.change_id for row in rows])
    for change_id, series_id, baseline_id in connection.execute(sa.select(*columns).where(of_these)):
        pairs[change_id].add((series_id, baseline_id))
    return [
        to_record(KnownChange, row, is_gone=row.gone_at is not None, pairs=frozenset(pairs[row.change_id]))
        for row in rows
    ]


def add_change(tx: Tx, change: FoundChange) -> int | None:
    """Record a change; None, and no change, if another process has recorded it."""
    insert = (postgresql if tx.connection.dialect.name == "postgresql" else sqlite).insert
    values = {
        **_values(change),
        "told_at": change.told_at,
        "recorded_at": tx.now,
        "first_cell_id": min(each.cell_id for each in change.series),
        "state": ChangeState.NEW,
    }
    unless_known = (
        insert(changes)
        .values(**values)
        .on_conflict_do_nothing(index_elements=["first_cell_id", "cause", "is_slower"])
    )
    change_id: int | None = tx.connection.execute(
        unless_known.returning(changes.c.change_id)
    ).scalar_one_or_none()
    if change_id is not None:
        _add_series(tx, change_id, change.series)
    return change_id


def update_change(tx: Tx, change_id: int, change: FoundChange) -> bool:
    """Replace the numbers and the evidence of a change; its state stays.

    False, and no change, if another one is recorded with the same first cell, cause and direction.
    """
    itself, other = changes.alias("itself"), changes.alias("other")
    same = sa.and_(
        itself.c.change_id == change_id,
        other.c.first_cell_id == itself.c.first_cell_id,
        other.c.change_id != change_id,
        other.c.cause == change.cause,
        other.c.is_slower == change.is_slower,
    )
    if tx.connection.execute(sa.select(other.c.change_id).where(same).limit(1)).one_or_none() is not None:
        return False
    of_change = changed_series.c.change_id == change_id
    tx.connection.execute(changed_series.delete().where(of_change))
    tx.connection.execute(
        changes.update().where(changes.c.change_id == change_id).values(**_values(change), gone_at=None)
    )
    _add_series(tx, change_id, change.series)
    return True


def _values(change: FoundChange) -> dict[str, Any]:
    return {
        "cause": change.cause,
        "is_passing": change.is_passing,
        "scope": dict(change.scope),
        "delta": change.delta,
        "se_delta": change.se_delta,
        "is_slower": change.is_slower,
        "before_at": change.before_at,
        "since_at": change.since_at,
        "devices": change.devices,
        "of_devices": change.of_devices,
        "versions": [asdict(version) for version in change.versions],
    }


def _add_series(tx: Tx, change_id: int, own: Sequence[ChangedSeries]) -> None:
    rows = [{"change_id": change_id, **asdict(each)} for each in own]
    tx.connection.execute(changed_series.insert(), rows)


def set_gone(tx: Tx, change_id: int) -> bool:
    """Say that the points show a change no more; False if that was said already."""
    shown = sa.and_(changes.c.change_id == change_id, changes.c.gone_at.is_(None))
    return tx.connection.execute(changes.update().where(shown).values(gone_at=tx.now)).rowcount == 1


def set_state(tx: Tx, change_id: int, state: ChangeState) -> None:
    """Store what a person says of a change."""
    tx.connection.execute(changes.update().where(changes.c.change_id == change_id).values(state=state))


def find_change(connection: Connection, change_id: int) -> RecordedChange | None:
    """Return a change by its number, or None."""
    return find_record(connection, RecordedChange, recorded_changes().where(changes.c.change_id == change_id))


def changes_query(which: ChangeFilter, *, before: RecordedChange | None, limit: int) -> sa.Select[Any]:
    """Return the query of the next changes of a listing, those told last first."""
    query = recorded_changes().order_by(changes.c.told_at.desc(), changes.c.change_id.desc()).limit(limit)
    if before is not None:
        place = sa.tuple_(changes.c.told_at, changes.c.change_id)
        query = query.where(place < sa.tuple_(_time(before.told_at), sa.literal(before.change_id)))
    if which.since is not None:
        query = query.where(changes.c.told_at >= which.since)
    if which.cause is not None:
        query = query.where(_known_cause == which.cause)
    if which.state is not None:
        query = query.where(changes.c.state == which.state)
    if not which.all:
        query = query.where(changes.c.is_slower, changes.c.gone_at.is_(None))
    if which.device_id is not None or which.model is not None or which.matrices is not None:
        of_change = (
            sa.select(changed_series.c.change_id)
            .join(series, series.c.series_id == changed_series.c.series_id)
            .where(changed_series.c.change_id == changes.c.change_id)
        )
        if which.device_id is not None:
            of_change = of_change.where(series.c.device_id == which.device_id)
        if which.model is not None:
            of_change = of_change.where(series.c.model == which.model)
        if which.matrices is not None:
            of_change = of_change.where(is_measured_in(changed_series.c.series_id, which.matrices))
        query = query.where(of_change.exists())
    return query


def _time(at: datetime) -> sa.BindParameter[datetime]:
    return sa.literal(at, type_=changes.c.told_at.type)


def list_changes(
    connection: Connection, which: ChangeFilter, *, before: RecordedChange | None, limit: int
) -> list[RecordedChange]:
    """Return the next changes of a listing, those told last first."""
    query = changes_query(which, before=before, limit=limit)
    return [to_record(RecordedChange, row) for row in connection.execute(query)]


def series_of_change(connection: Connection, change_id: int, *, limit: int) -> list[ChangedSeries]:
    """Return the series that show a change, by their numbers."""
    query = (
        sa.select(changed_series)
        .where(changed_series.c.change_id == change_id)
        .order_by(changed_series.c.series_id, changed_series.c.cell_id)
        .limit(limit)
    )
    return [to_record(ChangedSeries, row) for row in connection.execute(query)]


def count_series(connection: Connection, change_ids: Collection[int]) -> dict[int, int]:
    """Return the number of series of each of these changes."""
    query = (
        sa.select(changed_series.c.change_id, sa.func.count())
        .where(is_key_among(connection, changed_series.c.change_id, change_ids))
        .group_by(changed_series.c.change_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def identities_of_changes(
    connection: Connection, change_ids: Collection[int], *, of_baselines: bool
) -> dict[int, list[SeriesIdentity]]:
    """Return what the series of each of these changes run, or their baselines, each once."""
    own = changed_series.c.baseline_series_id if of_baselines else changed_series.c.series_id
    # As text, which PostgreSQL can compare.
    texts = [sa.cast(series.c[name], sa.Text).label(name) for name in ("recipe", "settings")]
    query = (
        sa.select(changed_series.c.change_id, *series.c["model", "backend", "harness"], *texts)
        .join(series, series.c.series_id == own)
        .where(is_key_among(connection, changed_series.c.change_id, change_ids))
        .distinct()
    )
    identities: defaultdict[int, list[SeriesIdentity]] = defaultdict(list)
    for row in connection.execute(query).all():
        identities[row.change_id].append(
            SeriesIdentity(
                model=row.model,
                recipe=json.loads(row.recipe) if row.recipe else None,
                backend=row.backend,
                settings=json.loads(row.settings),
                harness=row.harness,
            )
        )
    return identities


class SeriesMark(NamedTuple):
    """A change in the trend of a series. A tuple, because a page of trends has hundreds."""

    series_id: SeriesId
    baseline_series_id: SeriesId | None
    #: The first cell of the new level.
    cell_id: CellId
    change_id: int
    cause: ChangeCause
    state: ChangeState
    delta: float
    se_delta: float
    before_at: datetime
    since_at: datetime


# Built once: that takes longer than its answer.
@cache
def _marks_query(dialect_name: str) -> sa.Select[Any]:
    own = changed_series.c["series_id", "baseline_series_id", "cell_id"]
    of_change = changes.c["state", "delta", "se_delta", "before_at", "since_at"]
    of_series = is_key_listed(
        dialect_name, changed_series.c.series_id, sa.bindparam("series", type_=sa.Text())
    )
    return (
        sa.select(*own, changes.c.change_id, _known_cause.label("cause"), *of_change)
        .join(changes, changes.c.change_id == changed_series.c.change_id)
        .where(of_series, changes.c.gone_at.is_(None))
        .order_by(changes.c.change_id)
    )


def marks_of_series(connection: Connection, series_ids: Collection[SeriesId]) -> list[SeriesMark]:
    """Return the changes that series show, by their first cells; those that are gone are left out."""
    rows = connection.execute(
        _marks_query(connection.dialect.name), {"series": json.dumps([*series_ids])}
    ).all()
    return [SeriesMark._make(row) for row in rows]
