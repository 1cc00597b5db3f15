"""Files that a person uploaded: what takes the bytes of their quota, and its removal."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import Digest
from farm.core.errors import Conflict, Forbidden
from farm.core.models.variant import Variant, kept_files
from farm.core.operations.event import FarmEvent
from farm.core.operations.role import Caller, Role, is_permitted
from farm.core.programs.harness_name import is_own_name
from farm.database.transaction import Tx
from farm.services.files.artifacts import get_artifact
from farm.services.files.builtin_programs import builtin_digests
from farm.store.files import artifacts
from farm.store.files import programs as program_store
from farm.store.files import variants as variant_store
from farm.wire.documents.files.storage import FileRemoval, StoredFilesView, StoredFileView


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """A variant or a program that names a file."""

    #: As people read it: `resnet18/float32/lite`, `ann/bench for arm64-v8a`.
    name: str
    #: The person whose it is; None for one that all share.
    owner: str | None


def stored_files(
    connection: Connection, blobs: DiskBlobs, *, person: str, quota_bytes: int | None, limit: int
) -> StoredFilesView:
    """Return the files that count for a person, the largest first and at most `limit`, and their bytes."""
    actor = f"user:{person}"
    theirs = artifacts.artifacts_stored_by(connection, actor)
    references = _references(variant_store.list_variants(connection), program_store.list_programs(connection))
    needed = artifacts.needed_digests(connection) | builtin_digests()
    measured = artifacts.measured_digests(connection)
    return StoredFilesView(
        person=person,
        quota_bytes=quota_bytes,
        files=len(theirs),
        size_bytes=sum(artifact.size_bytes for artifact in theirs),
        arriving=blobs.arriving(actor),
        largest=tuple(
            StoredFileView(
                digest=artifact.digest,
                size_bytes=artifact.size_bytes,
                created_at=artifact.created_at,
                used_at=artifact.used_at,
                names=tuple(reference.name for reference in references.get(artifact.digest, ())),
                use="needed"
                if artifact.digest in needed
                else "measured"
                if artifact.digest in measured
                else "unused",
            )
            for artifact in theirs[:limit]
        ),
    )


def remove_file(tx: Tx, digest: Digest, caller: Caller) -> FileRemoval:
    """Mark a file of the caller's own as expired; an admin may do so with anyone's.

    Its row stays, with what was measured with it, and so do the names that are its; sending it again restores
    it. The bytes are to be set aside in another transaction.

    Raises:
        NotFound: the farm never had it.
        ArtifactExpired: the farm has it no more.
        Forbidden: someone else uploaded it, and the caller is no admin.
        Conflict: a matrix that is not finished needs it, the farm needs it itself, or a variant or program of
            someone else names it.
    """
    artifact = get_artifact(tx.connection, digest)
    is_admin = is_permitted(caller.role, Role.ADMIN)
    if artifact.stored_by != caller.actor and not is_admin:
        hint = "`farm storage files` lists yours; an admin may remove any"
        raise Forbidden(f"someone else uploaded {digest[:12]}", hint=hint)
    if digest in builtin_digests():
        hint = "it counts for no one's quota"
        raise Conflict(f"{digest[:12]} comes with the farm, which needs it", hint=hint)
    if digest in artifacts.needed_digests(tx.connection):
        raise Conflict(
            f"a matrix that is not finished needs {digest[:12]}",
            hint="wait until it is (`farm matrix list`), or cancel it: `farm matrix cancel ID`",
        )
    of_file = variant_store.variants_of_file(tx.connection, digest)
    references = _references(of_file, program_store.list_programs(tx.connection)).get(digest, [])
    if not is_admin:
        _check_no_others(digest, references, caller)
    artifacts.expire_artifacts(
        tx, [digest], cause=f"removed by {caller.name}", kind=FarmEvent.ARTIFACT_REMOVED
    )
    return FileRemoval(
        digest=digest,
        size_bytes=artifact.size_bytes,
        names=tuple(reference.name for reference in references),
    )


def remove_upload(blobs: DiskBlobs, digest: Digest, caller: Caller) -> FileRemoval | None:
    """Remove what has arrived of an upload of the caller's; None where there is none, or it is being sent."""
    size_bytes = blobs.drop_upload(caller.actor, digest)
    return FileRemoval(digest=digest, size_bytes=size_bytes, names=()) if size_bytes else None


def _check_no_others(digest: Digest, references: list[_Reference], caller: Caller) -> None:
    others = [reference.name for reference in references if reference.owner != caller.name]
    if others:
        raise Conflict(
            f"{digest[:12]} is also the file of {', '.join(others[:5])}, which is not {caller.name}'s",
            hint="ask an admin to remove it",
        )


def _references(
    variants: Iterable[Variant], programs: Iterable[program_store.Program]
) -> Mapping[Digest, list[_Reference]]:
    references: dict[Digest, list[_Reference]] = {}
    for variant in variants:
        reference = _Reference(name=variant.name, owner=variant.registered_by)
        for part in kept_files(variant.manifest):
            references.setdefault(part.digest, []).append(reference)
    for program in programs:
        person, separator, _ = program.harness.partition("/")
        owner = person if separator and is_own_name(program.harness, person) else None
        reference = _Reference(name=f"{program.harness} for {program.abi}", owner=owner)
        for file in program.bundle.files:
            references.setdefault(file.digest, []).append(reference)
    return references
