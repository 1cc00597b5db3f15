"""Variants: model files by name."""

from collections.abc import Collection

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, VariantId
from farm.core.models.variant import Manifest, Variant, variant_name
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import artifacts, variants
from farm.database.transaction import Tx

_MANIFEST = TypeAdapter(Manifest)
_LISTED = (
    sa.select(variants, artifacts.c.expired_at)
    .join(artifacts, artifacts.c.digest == variants.c.digest)
    .order_by(variants.c.variant_id)
)


def put_variant(tx: Tx, manifest: Manifest, *, registered_by: str | None = None) -> Variant:
    """Register a variant whose artifact is stored; the same file under the same name is the same variant.

    If a builder provides a new recipe for the same file, the newer manifest replaces the older one.
    """
    name = variant_name(manifest.model, manifest.recipe)
    variant = find_variant(tx.connection, name, manifest.digest)
    values = {
        "recipe_digest": manifest.recipe_digest,
        "manifest": _MANIFEST.dump_python(manifest, mode="json"),
    }
    if variant is None:
        new = {"name": name, "model": manifest.model, "digest": manifest.digest, "created_at": tx.now}
        insert = variants.insert().values(**new, **values, registered_by=registered_by).returning(variants)
        return to_record(Variant, tx.connection.execute(insert).one())
    if variant.manifest.recipe_digest == manifest.recipe_digest or not manifest.built_with:
        return variant
    update = variants.update().where(variants.c.variant_id == variant.variant_id).values(values)
    return to_record(Variant, tx.connection.execute(update.returning(variants)).one())


def find_variant(connection: Connection, name: str, digest: Digest) -> Variant | None:
    """Return the variant with a name and file digest, or None."""
    query = sa.select(variants).where(variants.c.name == name, variants.c.digest == digest)
    return find_record(connection, Variant, query)


def find_newest_variant(connection: Connection, name: str) -> Variant | None:
    """Return the variant that new matrices run under a name, or None."""
    query = sa.select(variants).where(variants.c.name == name).order_by(variants.c.variant_id.desc()).limit(1)
    return find_record(connection, Variant, query)


def list_variants(connection: Connection) -> list[Variant]:
    """Return all variants, oldest first, with the times at which their files expired."""
    return [to_record(Variant, row) for row in connection.execute(_LISTED)]


def list_models(connection: Connection) -> list[str]:
    """Return the names of all models that variants are of."""
    return list(connection.execute(sa.select(variants.c.model).distinct()).scalars())


def variants_page(connection: Connection, *, after: VariantId, limit: int) -> list[Variant]:
    """Return up to `limit` variants that were registered after one, oldest first."""
    query = _LISTED.where(variants.c.variant_id > after).limit(limit)
    return [to_record(Variant, row) for row in connection.execute(query)]


def variants_by_id(connection: Connection, variant_ids: Collection[VariantId]) -> dict[VariantId, Variant]:
    """Return variants by id, by one statement; unknown ids are missing."""
    query = sa.select(variants).where(is_among(connection, variants.c.variant_id, variant_ids))
    return {row.variant_id: to_record(Variant, row) for row in connection.execute(query)}
