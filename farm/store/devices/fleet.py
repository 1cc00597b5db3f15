"""The status of many devices: without their facts and conditions, whose JSON takes most of the time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.database.rows import is_among, to_record
from farm.database.tables import attempts, devices, hosts, is_live
from farm.store.devices.devices import HAS_DEVICE_ACTION, HAS_SESSION, DeviceStatus

_LIVE = sa.alias(attempts)
_STATUS_QUERY = (
    sa.select(
        *(devices.c[name] for name in DeviceStatus.__dataclass_fields__ if name in devices.c),
        _LIVE.c.job_id,
        HAS_SESSION.label("session_live"),
        hosts.c.state.label("host_state"),
        hosts.c.max_runs.label("host_max_runs"),
        HAS_DEVICE_ACTION.label("has_device_action"),
    )
    .join(hosts, hosts.c.host_id == devices.c.host_id)
    .outerjoin(_LIVE, sa.and_(_LIVE.c.device_id == devices.c.device_id, is_live(_LIVE)))
    .order_by(devices.c.device_id)
)

#: Of these columns it matters whether there is a job, and whether the device was cleaned up.
_OWN_COLUMNS = ("device_id", "label", "job_id", "fence", "cleaned_fence")
_STATUS = _STATUS_QUERY.order_by(None).subquery()
_EQUAL_COLUMNS = (
    *(column for column in _STATUS.c if column.name not in _OWN_COLUMNS),
    _STATUS.c.job_id.is_(None).label("has_no_job"),
    (_STATUS.c.fence <= _STATUS.c.cleaned_fence).label("is_cleaned"),
)
_OWN_STATUS = [_STATUS.c[name] for name in _OWN_COLUMNS]
_ALIKE_QUERY = (
    sa.select(
        *_EQUAL_COLUMNS,
        *(sa.func.min(_STATUS.c[name]).label(name) for name in _OWN_COLUMNS),
        sa.func.count().label("devices"),
    )
    .group_by(*_EQUAL_COLUMNS)
    .order_by(sa.func.min(_STATUS.c.device_id))
)


def list_device_ids(connection: Connection) -> Sequence[DeviceId]:
    """Return the ids of all devices, in any order."""
    return connection.execute(sa.select(devices.c.device_id)).scalars().all()


def alike_among(
    connection: Connection, device_ids: Collection[DeviceId]
) -> list[tuple[DeviceStatus, list[DeviceId]]]:
    """Return these devices by what decides, with the status of one of those that are alike."""
    is_asked = is_among(connection, _STATUS.c.device_id, device_ids)
    alike: dict[tuple[object, ...], tuple[DeviceStatus, list[DeviceId]]] = {}
    for row in connection.execute(sa.select(*_EQUAL_COLUMNS, *_OWN_STATUS).where(is_asked)).all():
        equal = tuple(row[: len(_EQUAL_COLUMNS)])
        if equal not in alike:
            alike[equal] = (to_record(DeviceStatus, row), [])
        alike[equal][1].append(row.device_id)
    return [*alike.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeDevices:
    """Devices of one host that the same keeps from work, if anything does."""

    #: Their common values, with the least id; all have a job, or none has one.
    status: DeviceStatus
    count: int
    #: The values of `_EQUAL_COLUMNS`.
    equal: tuple[object, ...]


def list_alike(connection: Connection, host_ids: Collection[HostId] | None = None) -> list[AlikeDevices]:
    """Return how many devices are alike, of all hosts or of some, by the least id.

    Of ten thousand, few differ in what decides.
    """
    query = _ALIKE_QUERY
    if host_ids is not None:
        query = query.where(is_among(connection, _STATUS.c.host_id, host_ids))
    return [
        AlikeDevices(
            status=to_record(DeviceStatus, row), count=row.devices, equal=tuple(row[: len(_EQUAL_COLUMNS)])
        )
        for row in connection.execute(query)
    ]


def first_alike(connection: Connection, alike: AlikeDevices, *, limit: int) -> list[DeviceId]:
    """Return the first of devices that are alike, by id."""
    same = (
        column.is_not_distinct_from(value) for column, value in zip(_EQUAL_COLUMNS, alike.equal, strict=True)
    )
    query = sa.select(_STATUS.c.device_id).where(*same).order_by(_STATUS.c.device_id).limit(limit)
    return list(connection.execute(query).scalars())


_NAME = sa.bindparam("name", type_=sa.Text())
_CALLED_QUERY = sa.select(devices.c.device_id).where(
    sa.or_(devices.c.device_id == _NAME, devices.c.label == _NAME)
)


def ids_called(connection: Connection, name: str) -> list[DeviceId]:
    """Return the devices with this id or label: two where the id of one is the label of another."""
    return list(connection.execute(_CALLED_QUERY, {"name": name}).scalars())
