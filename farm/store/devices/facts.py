"""Snapshots of what a device is, to which measurements point, and its number among those of its model."""

from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, FactsId, digest_of
from farm.core.devices.device import Admin, DeviceFacts
from farm.core.devices.selector import KnownDevice
from farm.core.operations.event import DeviceEvent
from farm.database.rows import find_record, to_record
from farm.database.tables import device_facts, devices
from farm.database.transaction import Tx
from farm.store.operations.events import record_event

_FACTS = TypeAdapter(DeviceFacts)


def known_devices(connection: Connection) -> list[KnownDevice]:
    """Return the devices with known facts, on which matrices can run, in the order of their ids."""
    query = (
        sa.select(devices, devices.c.host_id.label("host"), device_facts.c.facts)
        .join(device_facts, device_facts.c.facts_id == devices.c.facts_id)
        .where(devices.c.admin != Admin.RETIRED)
        .order_by(devices.c.device_id)
    )
    return [to_record(KnownDevice, row) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDevice:
    """A device as far as its reference runs depend on it."""

    device_id: DeviceId
    facts: DeviceFacts
    rebaselined_at: datetime | None


def find_checked_device(connection: Connection, device_id: DeviceId) -> CheckedDevice | None:
    """Return a device by what its reference runs depend on; None before its facts are known."""
    query = (
        sa.select(devices.c.device_id, devices.c.rebaselined_at, device_facts.c.facts)
        .join(device_facts, device_facts.c.facts_id == devices.c.facts_id)
        .where(devices.c.device_id == device_id)
    )
    return find_record(connection, CheckedDevice, query)


def put_facts(tx: Tx, device_id: DeviceId, facts: DeviceFacts) -> FactsId:
    """Store the facts of a device; unchanged facts keep their snapshot.

    The CPU domain of a virtual device does not influence measurements and is not part of the snapshot.
    """
    facts_id = _snapshot(tx, device_id, replace(facts, cpu_domain=None))
    tx.connection.execute(
        devices.update()
        .where(devices.c.device_id == device_id)
        .values(facts_id=facts_id, device_model=facts.device_model, soc=facts.soc, android=facts.android)
        .values(virtual=facts.virtual, cpu_domain=facts.cpu_domain)
    )
    return facts_id


def _snapshot(tx: Tx, device_id: DeviceId, facts: DeviceFacts) -> FactsId:
    digest = digest_of(_FACTS.dump_json(facts))
    facts_id = tx.connection.execute(
        sa.select(device_facts.c.facts_id).where(
            device_facts.c.device_id == device_id, device_facts.c.facts_digest == digest
        )
    ).scalar_one_or_none()
    if facts_id is not None:
        return FactsId(facts_id)
    document = _FACTS.dump_python(facts, mode="json")
    inserted = tx.connection.execute(
        device_facts.insert()
        .values(device_id=device_id, facts_digest=digest, facts=document, taken_at=tx.now)
        .returning(device_facts.c.facts_id)
    )
    return FactsId(inserted.scalar_one())


def assign_unit_number(tx: Tx, device_id: DeviceId, device_model: str) -> None:
    """Give a device the next unit number of its model, from 1, unless it has one.

    Retired phones keep theirs, so none is given again.
    """
    largest_unit = sa.select(sa.func.max(devices.c.unit)).where(devices.c.device_model == device_model)
    unit = (tx.connection.execute(largest_unit).scalar() or 0) + 1
    numbered = tx.connection.execute(
        devices.update().where(devices.c.device_id == device_id, devices.c.unit.is_(None)).values(unit=unit)
    )
    if numbered.rowcount:
        record_event(tx.by("farm"), DeviceEvent.NUMBERED, device_id, cause=f"unit {unit} of {device_model}")
