"""Register model files and other artifacts."""

from pathlib import Path

from farm.blobs.disk import DiskBlobs
from farm.blobs.inspection import check_model_file, is_converted_for_nnapi
from farm.core.base.ids import Digest, is_digest
from farm.core.errors import Conflict, DigestMismatch, Forbidden, InvalidInput, VariantInvalid
from farm.core.models.variant import Manifest, Variant, variant_name
from farm.core.operations.role import Caller, Role, is_permitted
from farm.database.transaction import Tx
from farm.services.files.artifacts import uploaded_size
from farm.store.files import variants as variant_store
from farm.store.files.artifacts import mark_used


def parse_digest(text: str) -> Digest:
    """Parse a digest that came from outside.

    Raises:
        InvalidInput: it is not spelled like one.
    """
    if not is_digest(text):
        raise InvalidInput(
            f"{text[:80]!r} is no digest", hint="a digest is the SHA-256 in 64 lower-case hexadecimal digits"
        )
    return Digest(text)


def check_variant_file(manifest: Manifest, blobs: DiskBlobs) -> None:
    """Look into the file of a manifest, if the farm has it. Reads much of it: not for a transaction.

    Raises:
        InvalidInput: the digest is none.
        VariantInvalid: the file is no model, or not of the format or for the backends its manifest names.
    """
    path = blobs.path(parse_digest(manifest.digest))
    if path.is_file():
        _check_content(path, variant_name(manifest.model, manifest.recipe), manifest)


def register_variant(tx: Tx, manifest: Manifest, caller: Caller) -> Variant:
    """Register a variant whose file `check_variant_file` accepts; again gives the same variant.

    New matrices run the newest file of a name, so a name stays with who registered that file.

    Raises:
        ArtifactMissing: the farm does not have the file.
        DigestMismatch: the file it has is of another size.
        Conflict: the farm has this file by this name, with other backends or inputs.
        Forbidden: the name has another file, of someone else, and the caller is no operator.
    """
    name = variant_name(manifest.model, manifest.recipe)
    size_bytes = uploaded_size(tx.connection, parse_digest(manifest.digest), called=f"the file of {name}")
    if size_bytes != manifest.size_bytes:
        raise DigestMismatch(
            f"the file of {name} has {size_bytes} bytes, its manifest says {manifest.size_bytes}"
        )
    stored = variant_store.find_variant(tx.connection, name, manifest.digest)
    if stored is not None:
        _check_manifest_unchanged(name, stored.manifest, manifest)
    if _may_change(variant_store.find_newest_variant(tx.connection, name), caller):
        stored = variant_store.put_variant(tx, manifest, registered_by=caller.name)
    elif stored is None:
        raise Forbidden(
            f"{name} is a file of someone else: another one would change what matrices of that name run",
            hint="give yours another model name (--model), or ask an operator",
        )
    mark_used(tx, [manifest.digest])
    return stored


def _may_change(newest: Variant | None, caller: Caller) -> bool:
    if newest is None or is_permitted(caller.role, Role.OPERATOR):
        return True
    return newest.registered_by in (None, caller.name)


def _check_content(path: Path, name: str, manifest: Manifest) -> None:
    actual = check_model_file(path, called=f"the file of {name}")
    if actual is not manifest.recipe.format:
        raise VariantInvalid(f"the file of {name} is {actual}, its manifest says {manifest.recipe.format}")
    # Else NNAPI's times would be taken for the CPU's, where no other proof is asked for.
    if manifest.backends != ("nnapi",) and is_converted_for_nnapi(path, actual):
        raise VariantInvalid(
            f"the file of {name} was converted for NNAPI, its manifest says {', '.join(manifest.backends)}",
            hint="it runs on NNAPI and on nothing else: --target nnapi, and no --backend",
        )


def _check_manifest_unchanged(name: str, stored: Manifest, manifest: Manifest) -> None:
    if stored.backends != manifest.backends or (manifest.inputs and stored.inputs != manifest.inputs):
        raise Conflict(
            f"the farm has this file as {name} already, with other backends or inputs",
            hint=f"`farm variant show {name}` shows them; another model name makes it another variant",
        )
