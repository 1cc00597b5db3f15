"""Variants: model files by name."""

from collections.abc import Collection

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, VariantId
from farm.core.errors import NotFound
from farm.core.models.variant import DIGEST_SHOWN, Manifest, Variant, variant_files, variant_name
from farm.core.operations.event import FarmEvent
from farm.database.rows import find_record, is_among, to_record
from farm.database.tables import artifacts, cells, variants
from farm.database.tables import variant_files as file_rows
from farm.database.transaction import Tx
from farm.store.matrices import lazy_expansion
from farm.store.newest_first import ListFilter, matching_newest_first
from farm.store.operations.events import record_event

_MANIFEST = TypeAdapter(Manifest)
_other = variants.alias("other")
_OTHERS = (
    sa.select(_other.c.digest)
    .where(_other.c.name == variants.c.name)
    .order_by(_other.c.name_order.desc())
    .limit(1)
)
_was_named_later = _other.c.name_order > variants.c.name_order
#: The file that new matrices ran under the name before, and the one that they run now.
_REPLACES = _OTHERS.where(_other.c.name_order < variants.c.name_order).scalar_subquery().label("replaces")
_REPLACED_BY = _OTHERS.where(_was_named_later).scalar_subquery().label("replaced_by")
_IS_CURRENT = ~sa.exists().where(_other.c.name == variants.c.name, _was_named_later)
#: Of the first of its files that expired.
_EXPIRED_AT = (
    sa.select(sa.func.min(artifacts.c.expired_at))
    .join(file_rows, file_rows.c.digest == artifacts.c.digest)
    .where(file_rows.c.variant_id == variants.c.variant_id)
    .scalar_subquery()
    .label("expired_at")
)
_VARIANTS = sa.select(variants, _REPLACES, _REPLACED_BY, _EXPIRED_AT)
_LISTED = _VARIANTS.order_by(variants.c.variant_id)


def put_variant(tx: Tx, manifest: Manifest, *, registered_by: str | None = None) -> Variant:
    """Register a variant whose artifacts are stored, and make it the current one of its name.

    The same files under a name are the same variant. If a builder provides a new recipe for them, the newer
    manifest replaces the older one.
    """
    name = variant_name(manifest.model, manifest.recipe)
    variant = find_variant(tx.connection, name, manifest.digest)
    if variant is None:
        insert = variants.insert().values(
            **_values(manifest),
            name_order=_next_order(name),
            digest=manifest.digest,
            created_at=tx.now,
            registered_by=registered_by,
        )
        variant_id = tx.connection.execute(insert.returning(variants.c.variant_id)).scalar_one()
        rows = [
            {"variant_id": variant_id, "path": file.path, "digest": file.digest}
            for file in variant_files(manifest)
        ]
        tx.connection.execute(file_rows.insert(), rows)
        return _record_named(tx, get_variant(tx.connection, variant_id))
    if variant.replaced_by is not None:
        given = variants.update().where(variants.c.variant_id == variant.variant_id)
        tx.connection.execute(given.values(name_order=_next_order(name)))
        variant = _record_named(tx, get_variant(tx.connection, variant.variant_id))
    if variant.manifest.recipe_digest == manifest.recipe_digest or not manifest.built_with:
        return variant
    return change_manifest(tx, variant.variant_id, manifest)


def _next_order(name: str) -> sa.ScalarSelect[int]:
    """Return the order of a file that is given a name now."""
    last = sa.func.coalesce(sa.func.max(_other.c.name_order), 0)
    return sa.select(last + 1).where(_other.c.name == name).scalar_subquery()


def _record_named(tx: Tx, variant: Variant) -> Variant:
    record_event(
        tx,
        FarmEvent.VARIANT_NAMED,
        variant.variant_id,
        from_state=variant.replaces and variant.replaces[:DIGEST_SHOWN],
        to_state=variant.manifest.digest[:DIGEST_SHOWN],
        cause=variant.name,
    )
    return variant


def change_manifest(tx: Tx, variant_id: VariantId, manifest: Manifest) -> Variant:
    """Give a variant other metadata of the same files, and with them maybe another name."""
    update = variants.update().where(variants.c.variant_id == variant_id)
    tx.connection.execute(update.values(_values(manifest)))
    return get_variant(tx.connection, variant_id)


def _values(manifest: Manifest) -> dict[str, object]:
    return {
        "name": variant_name(manifest.model, manifest.recipe),
        "model": manifest.model,
        "recipe_digest": manifest.recipe_digest,
        "manifest": _MANIFEST.dump_python(manifest, mode="json"),
    }


def get_variant(connection: Connection, variant_id: VariantId) -> Variant:
    """Return a variant.

    Raises:
        NotFound: there is none.
    """
    variant = find_record(connection, Variant, _VARIANTS.where(variants.c.variant_id == variant_id))
    if variant is None:
        raise NotFound(f"there is no variant {variant_id}", hint="`farm variant list` lists them")
    return variant


def find_variant(connection: Connection, name: str, digest: Digest) -> Variant | None:
    """Return the variant with a name and digest, or None."""
    query = _VARIANTS.where(variants.c.name == name, variants.c.digest == digest)
    return find_record(connection, Variant, query)


def find_current_variant(connection: Connection, name: str) -> Variant | None:
    """Return the variant that new matrices run under a name, or None."""
    query = _VARIANTS.where(variants.c.name == name).order_by(variants.c.name_order.desc()).limit(1)
    return find_record(connection, Variant, query)


def is_in_matrices(connection: Connection, variant_id: VariantId) -> bool:
    """Return whether a matrix runs a variant, or ran it; cells that are not stored yet count."""
    query = sa.select(cells.c.cell_id).where(cells.c.variant_id == variant_id).limit(1)
    if connection.execute(query).first() is not None:
        return True
    variant_ids, _ = lazy_expansion.needed_files(connection)
    return variant_id in variant_ids


def list_variants(connection: Connection) -> list[Variant]:
    """Return all variants, oldest first."""
    return [to_record(Variant, row) for row in connection.execute(_LISTED)]


def current_variants(connection: Connection) -> list[Variant]:
    """Return the variant that new matrices run under each name, in the order of registration."""
    return [to_record(Variant, row) for row in connection.execute(_LISTED.where(_IS_CURRENT))]


def variants_of_file(connection: Connection, digest: Digest) -> list[Variant]:
    """Return the variants that have a file or were tuned by it, whatever their names."""
    having = sa.select(file_rows.c.variant_id).where(file_rows.c.digest == digest)
    records = variants.c.manifest[("tuning", "records")].as_string()
    query = _LISTED.where(variants.c.variant_id.in_(having) | (records == digest))
    return [to_record(Variant, row) for row in connection.execute(query)]


def list_models(connection: Connection) -> list[str]:
    """Return the names of all models that variants are of."""
    return list(connection.execute(sa.select(variants.c.model).distinct()).scalars())


def variants_page(connection: Connection, *, after: VariantId, limit: int) -> list[Variant]:
    """Return up to `limit` variants that were registered after one, oldest first."""
    query = _LISTED.where(variants.c.variant_id > after).limit(limit)
    return [to_record(Variant, row) for row in connection.execute(query)]


def newest_variants(
    connection: Connection,
    which: ListFilter,
    *,
    replaced: bool = False,
    before: VariantId | None = None,
    limit: int,
) -> list[Variant]:
    """Return up to `limit` matching variants, newest first: those before one, where it is given.

    With `replaced`, those whose name new matrices understand as another file are among them.
    """
    own = variants.c
    query = matching_newest_first(
        _VARIANTS, own.variant_id, own.created_at, own.name, own.registered_by, which=which, before=before
    ).limit(limit)
    if not replaced:
        query = query.where(_IS_CURRENT)
    return [to_record(Variant, row) for row in connection.execute(query)]


def variants_by_id(connection: Connection, variant_ids: Collection[VariantId]) -> dict[VariantId, Variant]:
    """Return variants by id, by one statement; unknown ids are missing."""
    query = _VARIANTS.where(is_among(connection, variants.c.variant_id, variant_ids))
    return {row.variant_id: to_record(Variant, row) for row in connection.execute(query)}
