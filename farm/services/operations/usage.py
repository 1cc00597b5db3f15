"""The usage of devices in a week, for each device and for each device model."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.operations.usage import (
    Period,
    UsageState,
    action_changes,
    attempt_changes,
    percentages,
    usage,
    week_named,
    week_of,
)
from farm.store.devices import devices
from farm.store.devices.devices import Device
from farm.store.operations import usage as usage_store
from farm.wire.documents.devices import DeviceUsage, ModelUsage, UsageView

_Spent = Mapping[UsageState, timedelta]


def usage_in_week(connection: Connection, week_name: str | None, *, now: datetime) -> UsageView:
    """Return the usage of all devices in a week, by default this one; nothing after `now` is known.

    Raises:
        InvalidInput: there is no week of that name.
    """
    week = week_of(now) if week_name is None else week_named(week_name)
    period = Period(begin=week.begin, end=min(week.end, now))
    fleet = devices.list_devices(connection)
    known_since = usage_store.known_since(connection)
    spent_by_device = _spent_by_device(connection, fleet, known_since, period)
    known = [device for device in fleet if any(spent_by_device[device.device_id].values())]
    devices_by_model = defaultdict(list)
    for device in known:
        devices_by_model[tuple(_kind(device).items())].append(device.device_id)
    return UsageView(
        week=week.name,
        begin=period.begin,
        end=max(period.begin, period.end),
        known_since=min(known_since.values(), default=None),
        devices=tuple(
            DeviceUsage.of(device, **_kind(device), **_shares([spent_by_device[device.device_id]]))
            for device in known
        ),
        models=tuple(
            ModelUsage(
                **dict(kind),
                devices=len(device_ids),
                **_shares([spent_by_device[device_id] for device_id in device_ids]),
            )
            for kind, device_ids in sorted(devices_by_model.items(), key=str)
        ),
    )


def _spent_by_device(
    connection: Connection, fleet: Sequence[Device], known_since: Mapping[DeviceId, datetime], period: Period
) -> dict[DeviceId, _Spent]:
    changes_by_device = usage_store.device_changes(connection, period)
    changes_by_host = usage_store.host_changes(connection, period)
    attempts_by_device = usage_store.attempts_in(connection, period)
    actions_by_device = usage_store.actions_in(connection, period)
    spent: dict[DeviceId, _Spent] = {}
    for device in fleet:
        device_id = device.device_id
        known = replace(period, begin=max(period.begin, known_since[device_id]))
        changes = (
            *changes_by_device.get(device_id, ()),
            # A device that moved counts as if it had been at its present host.
            *changes_by_host.get(device.host_id, ()),
            *attempt_changes(attempts_by_device.get(device_id, ())),
            *action_changes(actions_by_device.get(device_id, ())),
        )
        spent[device_id] = usage(known, changes)
    return spent


def _kind(device: Device) -> dict[str, Any]:
    facts = device.facts
    return {
        "device_model": facts and facts.device_model,
        "soc": facts and facts.soc,
        "virtual": facts is not None and facts.virtual,
    }


def _shares(spent: Sequence[_Spent]) -> dict[str, Any]:
    total = {state: sum((each[state] for each in spent), timedelta(0)) for state in UsageState}
    return {
        "known_s": sum(total.values(), timedelta(0)).total_seconds(),
        "seconds": {state: duration.total_seconds() for state, duration in total.items()},
        "shares_pct": percentages(total),
    }
