"""Variants: concrete model files, by name."""

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
    """Register a variant whose artifact is there; the same file under the same name is the same variant.

    Of a builder that has learned more of the same file, the newer manifest is kept.
    """
    name = variant_name(manifest.model, manifest.recipe)
    known = find_variant(connection, name, manifest.digest)
    told = {
        "recipe_digest": manifest.recipe_digest,
        "manifest": _MANIFEST.dump_python(manifest, mode="json"),
    }
    if known is None:
        new = {"name": name, "model": manifest.model, "digest": manifest.digest, "created_at": now}
        return variant_of(
            connection.execute(variants.insert().values(**new, **told).returning(variants)).one()
        )
    if known.manifest.recipe_digest == manifest.recipe_digest or not manifest.built_with:
        return known
    again = variants.update().where(variants.c.variant_id == known.variant_id).values(told)
    return variant_of(connection.execute(again.returning(variants)).one())


def find_variant(connection: Connection, name: str, digest: Digest) -> Variant | None:
    """The variant of that name whose file has that digest."""
    query = sa.select(variants).where(variants.c.name == name, variants.c.digest == digest)
    row = connection.execute(query).one_or_none()
    return None if row is None else variant_of(row)


def list_variants(connection: Connection) -> list[Variant]:
    """All variants, oldest first."""
    return [
        variant_of(row) for row in connection.execute(sa.select(variants).order_by(variants.c.variant_id))
    ]


def get_variant(connection: Connection, variant_id: VariantId) -> Variant:
    """A variant that exists: cells refer to it by a foreign key."""
    return variant_of(
        connection.execute(sa.select(variants).where(variants.c.variant_id == variant_id)).one()
    )


def variant_of(row: sa.Row[Any]) -> Variant:
    """A variant from all columns of its row."""
    return Variant(
        variant_id=row.variant_id,
        name=row.name,
        manifest=_MANIFEST.validate_python(row.manifest),
        created_at=row.created_at,
    )
