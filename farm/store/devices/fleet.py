"""The status of many devices: without their facts and conditions, whose JSON takes most of the time."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.database.rows import to_record
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
_equal_columns = itemgetter(
    *(place for place, name in enumerate(_STATUS_QUERY.selected_columns.keys()) if name not in _OWN_COLUMNS)
)


def statuses_of_host(connection: Connection, host_id: HostId) -> list[DeviceStatus]:
    """Return the status of every device of a host, in the order of their ids."""
    query = _STATUS_QUERY.where(devices.c.host_id == host_id)
    return [to_record(DeviceStatus, row) for row in connection.execute(query)]


def statuses_of(connection: Connection, device_ids: Collection[DeviceId]) -> list[DeviceStatus]:
    """Return the status of each of these devices, in the order of their ids."""
    query = _STATUS_QUERY.where(devices.c.device_id.in_(device_ids))
    return [to_record(DeviceStatus, row) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeDevices:
    """Devices of one host that the same keeps from work, if anything does."""

    #: Of the first of them; all have a job, or none has one.
    status: DeviceStatus
    device_ids: Sequence[DeviceId]


def list_alike(connection: Connection) -> list[AlikeDevices]:
    """Return all devices, those that are alike together: of ten thousand, few differ in what decides."""
    first: dict[object, sa.Row[*tuple[Any, ...]]] = {}
    device_ids: defaultdict[object, list[DeviceId]] = defaultdict(list)
    for row in connection.execute(_STATUS_QUERY).all():
        key = _equal_columns(row), row.job_id is None, row.fence <= row.cleaned_fence
        first.setdefault(key, row)
        device_ids[key].append(row.device_id)
    return [
        AlikeDevices(status=to_record(DeviceStatus, row), device_ids=device_ids[key])
        for key, row in first.items()
    ]
