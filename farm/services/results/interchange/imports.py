"""Import of results that others measured: read outside of transactions, and stored in one for each file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import Conflict, NotFound
from farm.database.transaction import Tx
from farm.harness.base.adapter import Harness
from farm.harness.external.recognition import read_external_file
from farm.harness.external.results import ExternalFile, check_text
from farm.harness.registry import get_harness
from farm.services.files.harnesses import adapter_of
from farm.store.files.programs import current_programs
from farm.store.newest_first import ListFilter
from farm.store.results.interchange import external_results
from farm.store.results.interchange.external_results import ExternalFilter
from farm.wire.documents.results.export import json_text
from farm.wire.documents.results.imports import (
    ExternalResultView,
    ImportAnswer,
    ImportOutcome,
    ImportRequest,
    ImportView,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadImport:
    """A file that was read."""

    digest: Digest
    name: str
    size_bytes: int
    harness: str | None
    file: ExternalFile


def log_adapter(connection: Connection, name: str) -> Harness:
    """Return the adapter of a harness: of its current program's definition, or the built-in one.

    Raises:
        NotFound: there is none of that name.
    """
    programs = current_programs(connection, name)
    return adapter_of(next(iter(programs.values()))) if programs else get_harness(name)


def read_import(request: ImportRequest, harness: Harness | None) -> ReadImport:
    """Read a file, without a database.

    Raises:
        InputTooLarge: it has too many bytes.
        InvalidInput: it cannot be read; the message says why.
    """
    for text in (request.name, request.device, request.model):
        check_text(text or "", "the request")
    file = read_external_file(request.content, harness=harness)
    notes = list(file.notes)
    if request.device is not None:
        notes.append(_given_note("device", request.device, [result.device for result in file.results]))
    if request.model is not None:
        notes.append(_given_note("model", request.model, [result.model for result in file.results]))
    results = tuple(
        replace(result, device=result.device or request.device, model=result.model or request.model)
        for result in file.results
    )
    return ReadImport(
        digest=digest_of(request.content),
        name=request.name,
        size_bytes=len(request.content),
        harness=request.harness,
        file=replace(file, results=results, notes=tuple(notes)),
    )


def _given_note(field: str, given: str, told: Sequence[str | None]) -> str:
    if not any(told):
        return f"{field} {given}: given at the import, the file does not tell it"
    where = "for none of the results" if all(told) else "only where the file does not tell another"
    return f"{field} {given}: given at the import, used {where}"


def preview_import(connection: Connection, read: ReadImport) -> ImportAnswer:
    """Return what an import would do."""
    earlier = external_results.find_import_of(connection, read.digest)
    return _answer(read, ImportOutcome.IMPORTABLE if earlier is None else ImportOutcome.DUPLICATE, earlier)


def keep_import(tx: Tx, read: ReadImport) -> ImportAnswer:
    """Store a file's results; a file with the same bytes is stored once."""
    earlier = external_results.find_import_of(tx.connection, read.digest)
    if earlier is not None:
        return _answer(read, ImportOutcome.DUPLICATE, earlier)
    import_id = external_results.add_import(
        tx,
        digest=read.digest,
        name=read.name,
        size_bytes=read.size_bytes,
        harness=read.harness,
        file=read.file,
    )
    return _answer(read, ImportOutcome.IMPORTED, import_id)


def _answer(read: ReadImport, outcome: ImportOutcome, import_id: int | None) -> ImportAnswer:
    return ImportAnswer(
        outcome=outcome,
        import_id=import_id,
        digest=read.digest,
        format=read.file.format,
        results=len(read.file.results),
        notes=list(read.file.notes),
    )


def withdraw_import(tx: Tx, import_id: int, reason: str) -> ImportView:
    """Withdraw an import: its results stay, and are shown only where they are asked for.

    Raises:
        NotFound: there is no such import.
        Conflict: it was withdrawn already.
    """
    check_text(reason, "the reason")
    moved = external_results.withdraw_import(tx, import_id, reason)
    view = get_import_view(tx.connection, import_id)
    if not moved:
        raise Conflict(
            f"import {import_id} was withdrawn by {view.withdrawn_by} already",
            hint="the same file can be imported again",
        )
    return view


def import_views(
    connection: Connection, which: ListFilter, *, before: int | None = None, limit: int
) -> list[ImportView]:
    """Return a page of imported files, newest first: those before one; withdrawn ones, too."""
    rows = external_results.newest_imports(connection, which, before=before, limit=limit)
    return [ImportView.model_validate(row) for row in rows]


def get_import_view(connection: Connection, import_id: int) -> ImportView:
    """Return an imported file.

    Raises:
        NotFound: there is no such import.
    """
    row = external_results.find_import(connection, import_id)
    if row is None:
        raise NotFound(f"there is no import {import_id}", hint="`farm import list` names them")
    return ImportView.model_validate(row)


def external_result_views(
    connection: Connection, wanted: ExternalFilter, *, after: int, limit: int
) -> list[ExternalResultView]:
    """Return the next results of others."""
    rows = external_results.list_external_results(connection, wanted, after=after, limit=limit)
    return [
        ExternalResultView.model_validate(
            row
            | {
                "samples": None if row["samples"] is None else json_text(row["samples"]),
                "settings": json_text(row["settings"]),
            }
        )
        for row in rows
    ]
