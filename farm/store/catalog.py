"""What can be run: artifacts and variants."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.ids import Digest, VariantId
from farm.core.variant import Manifest, variant_name
from farm.store.tables import artifacts, variants

_MANIFEST = TypeAdapter(Manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A registered variant."""

    variant_id: VariantId
    name: str
    manifest: Manifest
    created_at: datetime


def artifact_size(connection: Connection, digest: Digest) -> int | None:
    """Bytes of an artifact the farm has."""
    kept = artifacts.c.expired_at.is_(None)
    return connection.execute(
        sa.select(artifacts.c.size_bytes).where(artifacts.c.digest == digest, kept)
    ).scalar_one_or_none()


def put_variant(connection: Connection, manifest: Manifest, *, now: datetime) -> Variant:
    """Register a variant whose artifact is there; the same file under the same name is the same variant."""
    name = variant_name(manifest.model, manifest.recipe)
    found = connection.execute(
        sa.select(variants).where(variants.c.name == name, variants.c.digest == manifest.digest)
    ).one_or_none()
    if found is not None:
        return _variant(found)
    row = connection.execute(
        variants.insert()
        .values(
            name=name,
            model=manifest.model,
            recipe_digest=manifest.recipe_digest,
            digest=manifest.digest,
            manifest=_MANIFEST.dump_python(manifest, mode="json"),
            created_at=now,
        )
        .returning(variants)
    ).one()
    return _variant(row)


def list_variants(connection: Connection) -> list[Variant]:
    """All variants, oldest first."""
    return [_variant(row) for row in connection.execute(sa.select(variants).order_by(variants.c.variant_id))]


def get_variant(connection: Connection, variant_id: VariantId) -> Variant:
    """A variant that exists: cells refer to it by a foreign key."""
    return _variant(connection.execute(sa.select(variants).where(variants.c.variant_id == variant_id)).one())


def _variant(row: sa.Row[Any]) -> Variant:
    return Variant(
        variant_id=row.variant_id,
        name=row.name,
        manifest=_MANIFEST.validate_python(row.manifest),
        created_at=row.created_at,
    )
