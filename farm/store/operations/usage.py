"""What the tables know of the usage of devices in a period; each query is bounded by the period."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.host_state import HostEvent
from farm.core.operations.event import DeviceEvent, EventKind, EventSubject, OperatorEvent
from farm.core.operations.usage import AttemptTimes, Period, UsageChange, UsageTrack
from farm.database.rows import to_record
from farm.database.tables import attempts, device_actions, devices, events, hosts, is_one_of, jobs

_TRACK_BY_KIND: Mapping[str, UsageTrack] = {
    DeviceEvent.FOUND: UsageTrack.ADMIN,
    **dict.fromkeys(AdminEvent, UsageTrack.ADMIN),
    DeviceEvent.PRESENCE_CHANGED: UsageTrack.PRESENCE,
    DeviceEvent.HEALTH_CHANGED: UsageTrack.HEALTH,
    OperatorEvent.RESERVED: UsageTrack.RESERVATION,
    OperatorEvent.RELEASED: UsageTrack.RESERVATION,
    **dict.fromkeys(HostEvent, UsageTrack.HOST),
}
_DEVICE_KINDS: tuple[EventKind, ...] = (
    DeviceEvent.FOUND,
    *AdminEvent,
    DeviceEvent.PRESENCE_CHANGED,
    DeviceEvent.HEALTH_CHANGED,
    OperatorEvent.RESERVED,
    OperatorEvent.RELEASED,
)
#: An open action expires after minutes, unless the farm is down.
_LONGEST_ACTION = timedelta(days=1)


def device_changes(connection: Connection, period: Period) -> dict[DeviceId, list[UsageChange]]:
    """Return by device the changes of its facts in a period, and the last of each kind before it."""
    changes = _changes(connection, period, devices.c.device_id, _DEVICE_KINDS)
    return {DeviceId(device_id): of_device for device_id, of_device in changes.items()}


def host_changes(connection: Connection, period: Period) -> dict[HostId, list[UsageChange]]:
    """Return the same of hosts."""
    changes = _changes(connection, period, hosts.c.host_id, tuple(HostEvent))
    return {HostId(host_id): of_host for host_id, of_host in changes.items()}


def attempts_in(connection: Connection, period: Period) -> dict[DeviceId, list[AttemptTimes]]:
    """Return by device the attempts claimed in a period, and the last one before it."""
    query = sa.select(attempts, jobs.c.kind).join(jobs, jobs.c.job_id == attempts.c.job_id)
    query = query.with_only_columns(
        attempts.c.device_id, *(query.selected_columns[field.name] for field in fields(AttemptTimes))
    )
    in_period = query.where(
        attempts.c.device_id.in_(sa.select(devices.c.device_id)),
        attempts.c.claimed_at >= period.begin,
        attempts.c.claimed_at < period.end,
    )
    before = sa.alias(attempts)
    last_before = (
        sa.select(before.c.attempt_id)
        .where(before.c.device_id == devices.c.device_id, before.c.claimed_at < period.begin)
        .order_by(before.c.claimed_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    found = defaultdict(list)
    for one in (
        in_period,
        query.where(attempts.c.attempt_id.in_(sa.select(last_before).select_from(devices))),
    ):
        for row in connection.execute(one):
            found[DeviceId(row.device_id)].append(to_record(AttemptTimes, row))
    return dict(found)


def actions_in(connection: Connection, period: Period) -> dict[DeviceId, list[Period]]:
    """Return by device when its device actions were open; one that still is, until the period's end."""
    query = sa.select(
        device_actions.c.device_id, device_actions.c.requested_at, device_actions.c.finished_at
    ).where(
        device_actions.c.requested_at >= period.begin - _LONGEST_ACTION,
        device_actions.c.requested_at < period.end,
    )
    actions_by_device = defaultdict(list)
    for row in connection.execute(query):
        action = Period(begin=row.requested_at, end=row.finished_at or period.end)
        actions_by_device[DeviceId(row.device_id)].append(action)
    return dict(actions_by_device)


def known_since(connection: Connection) -> dict[DeviceId, datetime]:
    """Return by device since when its history is complete: older changes of presence may be removed."""
    oldest = (
        sa.select(sa.func.min(events.c.at))
        .where(
            events.c.subject_id == devices.c.device_id,
            events.c.kind == DeviceEvent.PRESENCE_CHANGED,
            _is_fact(events),
        )
        .scalar_subquery()
    )
    query = sa.select(devices.c.device_id, sa.func.coalesce(oldest, devices.c.created_at).label("since"))
    return {DeviceId(row.device_id): row.since for row in connection.execute(query)}


def _changes(
    connection: Connection, period: Period, of: sa.Column[str], kinds: Collection[EventKind]
) -> dict[str, list[UsageChange]]:
    """Return by subject the changes of a kind in a period and the last one before, in their order."""
    in_period = _facts_query().where(
        events.c.subject_id.in_(sa.select(of)),
        events.c.kind.in_(kinds),
        events.c.at >= period.begin,
        events.c.at < period.end,
    )
    last_before = (_facts_query().where(_is_last_before(of, kind, period)) for kind in kinds)
    rows = connection.execute(sa.union_all(in_period, *last_before)).all()
    changes_by_subject = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.event_id):
        value = OperatorEvent.RESERVED if row.kind == OperatorEvent.RESERVED else row.to_state
        change = UsageChange(at=row.at, track=_TRACK_BY_KIND[row.kind], value=value)
        changes_by_subject[row.subject_id].append(change)
    return dict(changes_by_subject)


def _facts_query() -> sa.Select[Any]:
    """Return the query of events in `ix_events_facts`; devices and hosts differ in their kinds."""
    return sa.select(
        events.c.event_id, events.c.subject_id, events.c.kind, events.c.at, events.c.to_state
    ).where(_is_fact(events))


def _is_last_before(of: sa.Column[str], kind: EventKind, period: Period) -> sa.ColumnElement[bool]:
    """Return the condition that an event is the last one of a kind before a period, of any subject."""
    before = sa.alias(events)
    last = (
        sa.select(before.c.event_id)
        .where(before.c.subject_id == of, before.c.kind == kind, _is_fact(before), before.c.at < period.begin)
        .order_by(before.c.at.desc())
        .limit(1)
        .correlate(of.table)
        .scalar_subquery()
    )
    return events.c.event_id.in_(sa.select(last).select_from(of.table))


def _is_fact(of: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition of `ix_events_facts`."""
    return is_one_of(of.c.subject, (EventSubject.DEVICE, EventSubject.HOST))
