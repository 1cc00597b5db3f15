"""Register model files and other artifacts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.blobs.inspection import check_further_files_of, check_model_file, completed_manifest
from farm.blobs.torch_file import TorchCode, torch_code
from farm.core.base.ids import Digest, is_digest
from farm.core.errors import Conflict, DigestMismatch, Forbidden, InvalidInput, VariantInvalid
from farm.core.models.declared_inputs import InputsContradict, is_same_input, with_declared
from farm.core.models.further_files import files_problem
from farm.core.models.variant import (
    NAME_RULE,
    NOT_READ,
    Manifest,
    TensorSpec,
    Variant,
    find_invalid_name,
    kept_files,
    variant_files,
    variant_name,
)
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


def check_variant_file(manifest: Manifest, blobs: DiskBlobs) -> Manifest:
    """Return a manifest with what its model file states, if the farm has it.

    Reads much of it: not for a transaction.

    Raises:
        InvalidInput: the digest is none.
        VariantInvalid: the file is no model, or not of the format, for the backends or with the inputs that
            its manifest names; or a file that it needs beside it is missing.
    """
    name = variant_name(manifest.model, manifest.recipe)
    if (problem := files_problem(manifest)) is not None:
        raise VariantInvalid(f"{name}: {problem}")
    path = blobs.path(parse_digest(variant_files(manifest)[0].digest))
    if not path.is_file():
        return manifest
    code = _checked_code(path, name, manifest)
    check_further_files_of(path, manifest)
    return completed_manifest(path, manifest, code)


def register_variant(tx: Tx, manifest: Manifest, caller: Caller) -> Variant:
    """Register a variant whose files `check_variant_file` accepts, and give it its name.

    Again gives the same variant. New matrices run the file to which a name was given last, so a name stays
    with who registered that file.

    Raises:
        ArtifactMissing: the farm does not have one of the files.
        DigestMismatch: a file it has is of another size.
        Conflict: the farm has these files by this name, with other backends or inputs.
        Forbidden: the name has another file, of someone else, and the caller is no operator.
    """
    name, files = variant_name(manifest.model, manifest.recipe), kept_files(manifest)
    for file in files:
        called = f"{file.path} of {name}" if file.path else f"the file of {name}"
        size_bytes = uploaded_size(tx.connection, parse_digest(file.digest), called=called)
        if size_bytes != file.size_bytes:
            raise DigestMismatch(f"{called} has {size_bytes} bytes, its manifest says {file.size_bytes}")
    stored = variant_store.find_variant(tx.connection, name, manifest.digest)
    if stored is not None:
        _check_manifest_unchanged(name, stored.manifest, manifest)
    if _may_change(variant_store.find_current_variant(tx.connection, name), caller):
        stored = variant_store.put_variant(tx, manifest, registered_by=caller.name)
        if (completed := _completed(stored.manifest, manifest)) != stored.manifest:
            stored = variant_store.change_manifest(tx, stored.variant_id, completed)
    elif stored is None or stored.replaced_by is not None:
        raise Forbidden(
            f"{name} is a file of someone else: another one would change what matrices of that name run",
            hint="give yours another model name (--model), or ask an operator",
        )
    mark_used(tx, [file.digest for file in files])
    return stored


def changed_manifest(
    manifest: Manifest, blobs: DiskBlobs, *, model: str | None, inputs: Sequence[TensorSpec]
) -> Manifest:
    """Return a manifest with another model's name or declared inputs, and with what its file states.

    Reads much of the file: not for a transaction.

    Raises:
        InvalidInput: no matrix could use the name.
        VariantInvalid: the file has other inputs.
    """
    try:
        declared = with_declared(manifest, inputs) if inputs else manifest.inputs
    except InputsContradict as error:
        name = variant_name(manifest.model, manifest.recipe)
        raise VariantInvalid(
            f"{name}: {error}", hint="declare the sizes that the file leaves open"
        ) from error
    changed = replace(manifest, model=model or manifest.model, inputs=declared)
    if (word := find_invalid_name(changed)) is not None:
        raise InvalidInput(f"{word[:80]!r} is not a name", hint=NAME_RULE)
    return check_variant_file(changed, blobs)


def change_variant(tx: Tx, before: Variant, manifest: Manifest, caller: Caller) -> Variant:
    """Store the changed manifest of a variant; what has run with it keeps its numbers and its name.

    Args:
        tx: the transaction.
        before: the variant that was changed.
        manifest: of `changed_manifest`.
        caller: the person.

    Raises:
        Forbidden: it is of someone else, and the caller is no operator.
        Conflict: it was changed at the same time; or it gets another name, and a matrix runs it or the name
            is another file's.
    """
    current = variant_store.get_variant(tx.connection, before.variant_id)
    name = variant_name(manifest.model, manifest.recipe)
    if not _may_change(current, caller):
        raise Forbidden(
            f"{current.name} is a file of someone else",
            hint="ask an operator, or add the file by another name",
        )
    if current.manifest != before.manifest:
        raise Conflict(f"{current.name} was changed at the same time", hint="look at it, and try again")
    if name != current.name:
        _check_renamable(tx.connection, current, name)
    return variant_store.change_manifest(tx, current.variant_id, manifest)


def _check_renamable(connection: Connection, variant: Variant, name: str) -> None:
    if variant_store.is_in_matrices(connection, variant.variant_id):
        raise Conflict(
            f"matrices run {variant.name}, and its results are found by that name",
            hint="`farm variant add FILE --model NAME` gives the file a further name",
        )
    if variant_store.find_current_variant(connection, name) is not None:
        raise Conflict(
            f"{name} is the name of another file",
            hint="`farm variant add FILE --model NAME` gives a file a name that another has",
        )


def _may_change(current: Variant | None, caller: Caller) -> bool:
    if current is None or is_permitted(caller.role, Role.OPERATOR):
        return True
    return current.registered_by in (None, caller.name)


def _checked_code(path: Path, name: str, manifest: Manifest) -> TorchCode:
    """Return what the code of a file says, whose content is what its manifest says."""
    actual = check_model_file(path, called=f"the file of {name}")
    if actual is not manifest.recipe.format:
        raise VariantInvalid(f"the file of {name} is {actual}, its manifest says {manifest.recipe.format}")
    # Else NNAPI's times would be taken for the CPU's, where no other proof is asked for.
    code = torch_code(path, actual)
    if manifest.backends != ("nnapi",) and code.converted_for_nnapi:
        raise VariantInvalid(
            f"the file of {name} was converted for NNAPI, its manifest says {', '.join(manifest.backends)}",
            hint="it runs on NNAPI and on nothing else: --target nnapi, and no --backend",
        )
    return code


def _completed(stored: Manifest, manifest: Manifest) -> Manifest:
    """Return the stored manifest with what the file or its owner says now, where nothing was known."""
    stored = replace(
        stored,
        mobile_optimized=manifest.mobile_optimized,
        slow_path=manifest.slow_path,
        tuning=stored.tuning or manifest.tuning,
    )
    if manifest.macs_uncounted != NOT_READ:
        stored = replace(
            stored,
            operators=manifest.operators,
            macs=manifest.macs,
            macs_uncounted=manifest.macs_uncounted,
        )
    if stored.inputs_unread != NOT_READ:
        return replace(stored, inputs=stored.inputs or manifest.inputs)
    return replace(
        stored,
        inputs=manifest.inputs or stored.inputs,
        inputs_unread=manifest.inputs_unread,
        bundled_inputs=manifest.bundled_inputs,
    )


def _check_manifest_unchanged(name: str, stored: Manifest, manifest: Manifest) -> None:
    if stored.backends != manifest.backends or not _have_same_inputs(stored.inputs, manifest.inputs):
        raise Conflict(
            f"the farm has this file as {name} already, with other backends or inputs",
            hint=f"`farm variant show {name}` shows them, `farm variant set {name} --input` declares others;"
            " another model name makes it another variant",
        )


def _have_same_inputs(stored: Sequence[TensorSpec], declared: Sequence[TensorSpec]) -> bool:
    if not stored or not declared:
        return True
    return len(stored) == len(declared) and all(map(is_same_input, stored, declared))
