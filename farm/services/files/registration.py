"""Registers model files and other artifacts."""

from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.blobs.model_file import check_model_file
from farm.blobs.torch_code import is_converted_for_nnapi
from farm.core.base.ids import Digest, is_digest
from farm.core.errors import Conflict, DigestMismatch, InvalidInput, VariantInvalid
from farm.core.models.variant import Manifest, variant_name
from farm.services.files.artifacts import uploaded_size
from farm.store.files import variants as variant_store
from farm.store.files.artifacts import expired_at_by_digest, mark_used, put_artifact
from farm.store.files.variants import Variant
from farm.wire.documents.matrices.matrices import VariantView


def register_artifact(connection: Connection, digest: Digest, size_bytes: int, *, now: datetime) -> bool:
    """Record that the blob store holds these bytes, verified; False when it was known."""
    return put_artifact(connection, digest, size_bytes, now=now)


def parse_digest(text: str) -> Digest:
    """A digest as it came from outside.

    Raises:
        InvalidInput: it is not spelled like one.
    """
    if not is_digest(text):
        raise InvalidInput(
            f"{text[:80]!r} is no digest", hint="a digest is the SHA-256 in 64 lower-case hexadecimal digits"
        )
    return Digest(text)


def register_variant(
    connection: Connection, manifest: Manifest, blobs: DiskBlobs, *, now: datetime
) -> VariantView:
    """Register a variant whose file was uploaded before; registering it again gives the same variant.

    Raises:
        ArtifactMissing: the farm does not have the file.
        DigestMismatch: the file it has is of another size.
        VariantInvalid: the file is no model, or not of the format or for the backends its manifest names.
        Conflict: the farm has this file by this name, with other backends or inputs.
    """
    name = variant_name(manifest.model, manifest.recipe)
    size_bytes = uploaded_size(connection, parse_digest(manifest.digest), called=f"the file of {name}")
    if size_bytes != manifest.size_bytes:
        raise DigestMismatch(
            f"the file of {name} has {size_bytes} bytes, its manifest says {manifest.size_bytes}"
        )
    _check_content(blobs.path(manifest.digest), name, manifest)
    known = variant_store.find_variant(connection, name, manifest.digest)
    if known is not None:
        _check_manifest_unchanged(name, known.manifest, manifest)
    variant = variant_store.put_variant(connection, manifest, now=now)
    mark_used(connection, [manifest.digest], now=now)
    return variant_view(variant)


def _check_content(path: Path, name: str, manifest: Manifest) -> None:
    found = check_model_file(path, called=f"the file of {name}")
    if found is not manifest.recipe.format:
        raise VariantInvalid(f"the file of {name} is {found}, its manifest says {manifest.recipe.format}")
    # Else NNAPI's times would be taken for the CPU's, where no other proof is asked for.
    if manifest.backends != ("nnapi",) and is_converted_for_nnapi(path, found):
        raise VariantInvalid(
            f"the file of {name} was converted for NNAPI, its manifest says {', '.join(manifest.backends)}",
            hint="it runs on NNAPI and on nothing else: --target nnapi, and no --backend",
        )


def _check_manifest_unchanged(name: str, known: Manifest, said: Manifest) -> None:
    if known.backends != said.backends or (said.inputs and known.inputs != said.inputs):
        raise Conflict(
            f"the farm has this file as {name} already, with other backends or inputs",
            hint=f"`farm variant show {name}` shows them; another model name makes it another variant",
        )


def list_variants(connection: Connection) -> list[VariantView]:
    """All variants, oldest first."""
    expired = expired_at_by_digest(connection)
    return [
        variant_view(variant).model_copy(update={"expired_at": expired.get(variant.manifest.digest)})
        for variant in variant_store.list_variants(connection)
    ]


def variant_view(variant: Variant) -> VariantView:
    """A variant as it is shown."""
    return VariantView(
        variant_id=variant.variant_id,
        name=variant.name,
        manifest=variant.manifest,
        created_at=variant.created_at,
    )
