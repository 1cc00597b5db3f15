"""Recent checks and failures of devices."""

from collections.abc import Collection
from datetime import datetime
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.core.checks.check_schedule import CHECKS_CONSIDERED, PastCheck
from farm.core.checks.failures import (
    FIRST_LISTING,
    DeviceFailure,
    HealthChange,
    became_unreachable,
    may_be_host_caused,
)
from farm.core.devices.device import Presence
from farm.core.errors import Blame
from farm.core.jobs.job import JobState
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.rows import to_record
from farm.database.tables import JOB_IS_CHECK, attempts, events, jobs, sessions

#: More than a device can fail within the examined time.
_LAST_ATTEMPTS = 5


def disconnects_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime, *, host_id: HostId
) -> list[DeviceFailure]:
    """Return when online devices became unreachable since a time, oldest first.

    Those that the host's agent has not found yet since it started are not among them.
    """
    changes = connection.execute(_changes_query(DeviceEvent.PRESENCE_CHANGED, device_ids, since)).all()
    opened_query = (
        sa.select(sessions.c.opened_at)
        .where(sessions.c.host_id == host_id)
        .order_by(sessions.c.epoch.desc())
        .limit(1)
    )
    opened_at = connection.execute(opened_query).scalar_one()
    found: set[str] = set()
    disconnects: list[DeviceFailure] = []
    for row in changes:
        if row.to_state == Presence.ONLINE and row.at >= opened_at:
            found.add(row.device_id)
        if not became_unreachable(Presence(row.before), Presence(row.to_state)):
            continue
        if row.device_id in found or not opened_at <= row.at < opened_at + FIRST_LISTING:
            disconnects.append(to_record(DeviceFailure, row))
    return disconnects


def boots_since(connection: Connection, device_id: DeviceId, since: datetime) -> list[datetime]:
    """Return when a device began to boot since a time, oldest first; only boots after it was last online."""
    changes = connection.execute(_changes_query(DeviceEvent.PRESENCE_CHANGED, [device_id], since)).all()
    newest = takewhile(lambda row: row.to_state != Presence.ONLINE, reversed(changes))
    return [row.at for row in newest if row.to_state == Presence.BOOTING][::-1]


def failures_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime
) -> list[DeviceFailure]:
    """Return failed attempts since a time that are blamed on their devices but may be caused by the host."""
    failures: list[DeviceFailure] = []
    for device_id in device_ids:
        query = (
            sa.select(attempts.c.finished_at, attempts.c.blame, attempts.c.code)
            .where(attempts.c.device_id == device_id)
            .order_by(attempts.c.fence.desc())
            .limit(_LAST_ATTEMPTS)
        )
        failures += [
            DeviceFailure(device_id=device_id, at=row.finished_at)
            for row in connection.execute(query)
            if row.finished_at is not None and row.finished_at >= since
            if may_be_host_caused(None if row.blame is None else Blame(row.blame), row.code)
        ]
    return failures


def health_changes_since(
    connection: Connection, device_ids: Collection[DeviceId], since: datetime
) -> list[HealthChange]:
    """Return how the health of devices changed since then, oldest first."""
    query = _changes_query(DeviceEvent.HEALTH_CHANGED, device_ids, since)
    return [to_record(HealthChange, row) for row in connection.execute(query)]


def _changes_query(kind: DeviceEvent, device_ids: Collection[DeviceId], since: datetime) -> sa.Select[Any]:
    return (
        sa.select(
            events.c.subject_id.label("device_id"),
            events.c.at,
            events.c.from_state.label("before"),
            events.c.to_state,
        )
        .where(
            events.c.subject == EventSubject.DEVICE,
            events.c.subject_id.in_(device_ids),
            events.c.kind == kind,
            events.c.at >= since,
        )
        .order_by(events.c.event_id)
    )


def last_checks(connection: Connection, device_id: DeviceId) -> list[PastCheck]:
    """Return the last finished checks of a device, newest first."""
    query = (
        sa.select(jobs.c.outcome, jobs.c.code, jobs.c.finished_at)
        .where(
            jobs.c.device_id == device_id,
            JOB_IS_CHECK,
            jobs.c.state == JobState.FINISHED,
        )
        .order_by(jobs.c.job_id.desc())
        .limit(CHECKS_CONSIDERED)
    )
    return [to_record(PastCheck, row) for row in connection.execute(query)]
