"""Variants: model files by name."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, VariantId
from farm.core.models.variant import Manifest, variant_name
from farm.database.tables import variants

_MANIFEST = TypeAdapter(Manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A registered variant."""

    variant_id: VariantId
    name: str
    manifest: Manifest
    created_at: datetime


def put_variant(connection: Connection, manifest: Manifest, *, now: datetime) -> Variant:
    """Register a variant whose artifact is stored; the same file under the same name is the same variant.

    If a builder provides a new recipe for the same file, the newer manifest replaces the older one.
    """
    name = variant_name(manifest.model, manifest.recipe)
    variant = find_variant(connection, name, manifest.digest)
    values = {
        "recipe_digest": manifest.recipe_digest,
        "manifest": _MANIFEST.dump_python(manifest, mode="json"),
    }
    if variant is None:
        new = {"name": name, "model": manifest.model, "digest": manifest.digest, "created_at": now}
        return variant_of(
            connection.execute(variants.insert().values(**new, **values).returning(variants)).one()
        )
    if variant.manifest.recipe_digest == manifest.recipe_digest or not manifest.built_with:
        return variant
    update = variants.update().where(variants.c.variant_id == variant.variant_id).values(values)
    return variant_of(connection.execute(update.returning(variants)).one())


def find_variant(connection: Connection, name: str, digest: Digest) -> Variant | None:
    """Return the variant with a name and file digest, or None."""
    query = sa.select(variants).where(variants.c.name == name, variants.c.digest == digest)
    row = connection.execute(query).one_or_none()
    return None if row is None else variant_of(row)


def list_variants(connection: Connection) -> list[Variant]:
    """Return all variants, oldest first."""
    return [
        variant_of(row) for row in connection.execute(sa.select(variants).order_by(variants.c.variant_id))
    ]


def get_variant(connection: Connection, variant_id: VariantId) -> Variant:
    """Return a variant that exists: cells refer to it by a foreign key."""
    return variant_of(
        connection.execute(sa.select(variants).where(variants.c.variant_id == variant_id)).one()
    )


def variant_of(row: sa.Row[Any]) -> Variant:
    """Return the variant of a row with all columns."""
    return Variant(
        variant_id=row.variant_id,
        name=row.name,
        manifest=_MANIFEST.validate_python(row.manifest),
        created_at=row.created_at,
    )
