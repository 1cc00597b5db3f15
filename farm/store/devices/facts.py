"""Snapshots of what a device is, to which measurements point, and its number among those of its model."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, FactsId, digest_of
from farm.core.devices.device import Admin, DeviceFacts
from farm.core.devices.selector import KnownDevice
from farm.core.operations.event import DeviceEvent, EventSubject
from farm.database.tables import device_facts, devices
from farm.store.operations.events import record_event

_FACTS = TypeAdapter(DeviceFacts)


def stored_facts(document: Mapping[str, Any]) -> DeviceFacts:
    """Parse the facts of a row."""
    return _FACTS.validate_python(document, strict=False)


def known_devices(connection: Connection) -> list[KnownDevice]:
    """Return the devices with known facts, on which matrices can run, in the order of their ids."""
    query = (
        sa.select(devices, device_facts.c.facts)
        .join(device_facts, device_facts.c.facts_id == devices.c.facts_id)
        .where(devices.c.admin != Admin.RETIRED)
        .order_by(devices.c.device_id)
    )
    return [
        KnownDevice(
            device_id=row.device_id,
            host=row.host_id,
            facts=stored_facts(row.facts),
            label=row.label,
            tags=tuple(row.tags),
            unit=row.unit,
        )
        for row in connection.execute(query)
    ]


def put_facts(connection: Connection, device_id: DeviceId, facts: DeviceFacts, *, now: datetime) -> FactsId:
    """Store the facts of a device; unchanged facts keep their snapshot.

    The CPU domain of a virtual device does not influence measurements and is not part of the snapshot.
    """
    facts_id = _snapshot(connection, device_id, replace(facts, cpu_domain=None), now=now)
    connection.execute(
        devices.update()
        .where(devices.c.device_id == device_id)
        .values(facts_id=facts_id, cpu_domain=facts.cpu_domain)
    )
    return facts_id


def _snapshot(connection: Connection, device_id: DeviceId, facts: DeviceFacts, *, now: datetime) -> FactsId:
    digest = digest_of(_FACTS.dump_json(facts))
    facts_id = connection.execute(
        sa.select(device_facts.c.facts_id).where(
            device_facts.c.device_id == device_id, device_facts.c.facts_digest == digest
        )
    ).scalar_one_or_none()
    if facts_id is not None:
        return FactsId(facts_id)
    document = _FACTS.dump_python(facts, mode="json")
    inserted = connection.execute(
        device_facts.insert()
        .values(device_id=device_id, facts_digest=digest, facts=document, taken_at=now)
        .returning(device_facts.c.facts_id)
    )
    return FactsId(inserted.scalar_one())


def assign_unit_number(
    connection: Connection, device_id: DeviceId, device_model: str, *, now: datetime
) -> None:
    """Give a device the next unit number of its model, from 1, unless it has one.

    Retired phones keep theirs, so none is given again.
    """
    taken = (
        sa.select(sa.func.coalesce(sa.func.max(devices.c.unit), 0))
        .join(device_facts, device_facts.c.facts_id == devices.c.facts_id)
        .where(device_facts.c.facts["device_model"].as_string() == device_model)
    )
    unit = connection.execute(taken).scalar_one() + 1
    numbered = connection.execute(
        devices.update().where(devices.c.device_id == device_id, devices.c.unit.is_(None)).values(unit=unit)
    )
    if numbered.rowcount:
        record_event(
            connection,
            at=now,
            actor="farm",
            kind=DeviceEvent.NUMBERED,
            subject=EventSubject.DEVICE,
            subject_id=device_id,
            cause=f"unit {unit} of {device_model}",
        )
