"""Snapshots of what a device is; measurements point to the one that held."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, FactsId, digest_of
from farm.core.devices.device import DeviceFacts
from farm.database.tables import device_facts, devices

_FACTS = TypeAdapter(DeviceFacts)


def stored_facts(document: Mapping[str, Any]) -> DeviceFacts:
    """Facts as they stand in a row."""
    return _FACTS.validate_python(document, strict=False)


def put_facts(connection: Connection, device_id: DeviceId, facts: DeviceFacts, *, now: datetime) -> FactsId:
    """Give a device its facts; the same facts as before are the same snapshot.

    Which CPU a virtual phone shares is no fact that numbers depend on, and stays out of the snapshot.
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
    found = connection.execute(
        sa.select(device_facts.c.facts_id).where(
            device_facts.c.device_id == device_id, device_facts.c.facts_digest == digest
        )
    ).scalar_one_or_none()
    if found is not None:
        return FactsId(found)
    document = _FACTS.dump_python(facts, mode="json")
    inserted = connection.execute(
        device_facts.insert()
        .values(device_id=device_id, facts_digest=digest, facts=document, taken_at=now)
        .returning(device_facts.c.facts_id)
    )
    return FactsId(inserted.scalar_one())
