"""The system builds that measurements of a phone were made on."""

from sqlalchemy.engine import Connection

from farm.core.base.ids import FactsId
from farm.core.devices.software_version import build_by_facts
from farm.store.results.provenance import facts_by_id


def builds_of(connection: Connection, facts_ids: set[FactsId | None]) -> dict[FactsId, int]:
    """The builds that measurements of a phone were made on; empty where all are of one snapshot."""
    known = {facts_id for facts_id in facts_ids if facts_id is not None}
    return build_by_facts(facts_by_id(connection, sorted(known))) if len(known) > 1 else {}
