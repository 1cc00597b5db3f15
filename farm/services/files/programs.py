"""Register the programs of harnesses, after an inspection of every file, and list them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.blobs.inspection import inspect_program_file
from farm.core.base.setting_values import AdapterFlag, flag_choices, flag_maximum, flag_option
from farm.core.base.spec_errors import name_hint
from farm.core.errors import ArtifactExpired, ArtifactMissing, Forbidden, InvalidInput, NotFound
from farm.core.operations.event import FarmEvent
from farm.core.operations.role import Caller, Role, is_permitted
from farm.core.programs.abi import program_abi
from farm.core.programs.binary_inspection import FileInspection, find_missing_flags
from farm.core.programs.built_with import MAX_PART_TEXT, ProgramPart
from farm.core.programs.bundle import Bundle, BundleFile, check_bundle
from farm.core.programs.harness_name import base_name, is_own_name, own_name
from farm.core.programs.warnings import ProgramWarning, program_warnings
from farm.database.transaction import Tx
from farm.harness.registry import get_harness, harness_names, has_adapter
from farm.services.files.artifacts import uploaded_size
from farm.services.files.harnesses import adapter_of, check_successor
from farm.services.files.registration import parse_digest
from farm.store.files.artifacts import expired_at_by_digest, mark_used
from farm.store.files.program_parts import parts_by_program, put_parts
from farm.store.files.programs import Program, current_programs, list_programs, put_program
from farm.store.operations.events import record_event
from farm.wire.documents.files.harness_definition import harness_definition
from farm.wire.documents.files.programs import (
    AdapterView,
    BundleFileSpec,
    FlagView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    ProgramWarningView,
    RegisteredProgramView,
)

_DIGEST_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedProgram:
    """A program whose files were looked into: it may be registered."""

    harness: str
    abi: str
    bundle: Bundle
    definition: Mapping[str, Any] | None
    missing_flags: frozenset[str]
    built_with: tuple[ProgramPart, ...]
    notes: tuple[ProgramWarning, ...]


def check_may_register(caller: Caller, name: str) -> None:
    """Check that a caller may register programs under a name: matrices of others run what a shared one means.

    Raises:
        Forbidden: the name is shared and the caller is no operator, or it is another person's.
    """
    if is_permitted(caller.role, Role.OPERATOR) or is_own_name(name, caller.name):
        return
    own = own_name(caller.name, name)
    hint = f"register it as `{own}`, and name that in matrices; or ask an operator"
    raise Forbidden(
        f"`{name}` is not {caller.name}'s: registering a program changes what it runs for everyone",
        hint=hint if own is not None else "ask an operator to register it",
    )


def inspect_program(registration: ProgramRegistration, blobs: DiskBlobs) -> InspectedProgram:
    """Check a registration and look into its files. Reads all of them: not for a transaction.

    Raises:
        InvalidInput: no such harness, a bundle that cannot be, or files that do not go together.
        HarnessInvalid: the definition of a generic harness makes no sense.
        ArtifactMissing: a file was not uploaded.
    """
    definition = _checked_definition(registration)
    flag_by_word = {} if definition is not None else _flag_by_word(registration.name)
    bundle = Bundle(
        files=tuple(_bundle_file(file, blobs) for file in registration.files),
        entry=registration.entry,
        env=registration.env,
        command=registration.command,
    )
    check_bundle(bundle)
    _check_parts(registration.built_with)
    inspection_by_path = {
        file.path: inspect_program_file(blobs.path(file.digest), flag_by_word) for file in bundle.files
    }
    abi = program_abi(inspection_by_path, bundle.entry, registration.abi)
    missing_flags = _missing_flags(flag_by_word, inspection_by_path, bundle.entry)
    return InspectedProgram(
        harness=registration.name,
        abi=abi,
        bundle=bundle,
        definition=definition,
        missing_flags=missing_flags or frozenset(),
        built_with=registration.built_with,
        notes=(
            *program_warnings(bundle, inspection_by_path),
            *_flag_notes(registration, missing_flags, inspection_by_path),
        ),
    )


def register_program(tx: Tx, inspection: InspectedProgram) -> RegisteredProgramView:
    """Make a program the one that new matrices run; earlier matrices keep theirs.

    Raises:
        ArtifactMissing: a file was not uploaded, or has expired since.
        HarnessInvalid: the definition would join histories of different work.
    """
    if inspection.definition is not None:
        check_successor(tx.connection, inspection.harness, harness_definition(inspection.definition))
    for file in inspection.bundle.files:
        uploaded_size(tx.connection, file.digest, called=f"the file `{file.path}`")
    mark_used(tx, [file.digest for file in inspection.bundle.files])
    before = current_programs(tx.connection, inspection.harness).get(inspection.abi)
    earlier = {program.program_id for program in list_programs(tx.connection, harness=inspection.harness)}
    program = put_program(
        tx,
        harness=inspection.harness,
        abi=inspection.abi,
        bundle=inspection.bundle,
        definition=inspection.definition,
        missing_flags=inspection.missing_flags,
    )
    if inspection.built_with:
        put_parts(tx, program.program_id, inspection.built_with)
    cause = f"{program.harness} for {program.abi}, {program.digest[:12]}"
    record_event(tx, FarmEvent.PROGRAM_REGISTERED, program.program_id, to_state="in use", cause=cause)
    parts = parts_by_program(tx.connection, harness=inspection.harness)
    replaced = before if before is not None and before.program_id != program.program_id else None
    return RegisteredProgramView(
        program=_program_view(program, parts, in_use=True),
        replaces=None if replaced is None else _program_view(replaced, parts, in_use=False),
        was_registered=program.program_id in earlier,
        notes=tuple(map(ProgramWarningView.of, inspection.notes)),
    )


def list_program_views(connection: Connection, *, harness: str | None = None) -> list[ProgramView]:
    """Return the registered programs, of one harness or all, by when they were last registered."""
    registered = list_programs(connection, harness=harness)
    in_use = {(program.harness, program.abi): program.program_id for program in registered}
    parts = parts_by_program(connection, harness=harness)
    return [
        _program_view(program, parts, in_use=in_use[program.harness, program.abi] == program.program_id)
        for program in registered
    ]


def list_adapters(connection: Connection) -> list[AdapterView]:
    """Return the farm's own adapters, by name."""
    return [
        AdapterView(
            name=name,
            formats=tuple(adapter.formats),
            backends=tuple(adapter.backends),
            parser_version=adapter.parser_version,
            abis=tuple(sorted(current_programs(connection, name))),
        )
        for name in harness_names()
        for adapter in (get_harness(name),)
    ]


def harness_view(connection: Connection, name: str) -> HarnessView:
    """Return a harness with its options and programs.

    Raises:
        NotFound: neither this farm nor a user made one of that name.
    """
    registered = list_programs(connection, harness=name)
    if not registered and not has_adapter(name):
        names = {program.harness for program in list_programs(connection)}
        hint = name_hint(name, [*names, *harness_names()])
        raise NotFound(f"there is no harness `{name}`", hint=hint)
    adapter = adapter_of(registered[-1]) if registered else get_harness(name)
    flags = (
        FlagView(
            name=flag,
            default=option.default,
            help=option.help,
            minimum=option.minimum,
            maximum=flag_maximum(option),
            choices=flag_choices(option),
        )
        for flag, option in adapter.flags.items()
    )
    definition = registered[-1].definition if registered else None
    return HarnessView(
        name=name,
        clock_covers=adapter.clock_covers,
        parser_version=adapter.parser_version,
        needs_model=adapter.needs_model,
        formats=tuple(adapter.formats),
        backends=tuple(adapter.backends),
        metrics=tuple(adapter.metrics),
        flags=tuple(flags),
        programs=tuple(list_program_views(connection, harness=name)),
        definition=None if definition is None else dict(definition),
    )


def check_program_kept(connection: Connection, program: Program) -> None:
    """Refuse a program that cannot run any more.

    Raises:
        ArtifactExpired: one of its files was deleted.
    """
    expired = expired_at_by_digest(connection)
    for file in program.bundle.files:
        if (expired_at := expired.get(file.digest)) is not None:
            raise ArtifactExpired(
                f"{file.path} of the program of {program.harness} ({file.digest[:_DIGEST_SHOWN]})"
                f" was deleted on {expired_at:%Y-%m-%d}",
                hint=f"send the same files again: `farm harness add {program.harness} PATH`",
            )


def _checked_definition(registration: ProgramRegistration) -> dict[str, Any] | None:
    """Return the definition to store with a generic harness's program; None where the farm has an adapter."""
    name, data = registration.name, registration.definition
    if data is None:
        if not has_adapter(name):
            known = name_hint(base_name(name), harness_names())
            hint = f"{known}; for a program of your own, add --definition FILE"
            raise InvalidInput(f"the farm has no adapter for a harness `{name}`", hint=hint)
        return None
    if has_adapter(name):
        raise InvalidInput(
            f"`{base_name(name)}` has an adapter of the farm's own", hint="give yours another name"
        )
    definition = harness_definition(data)
    if definition.name != base_name(name):
        message = f"the definition is that of `{definition.name}`, not of `{name}`"
        raise InvalidInput(
            message, hint="use one name for both; a name space, as in `ann/`, is no part of it"
        )
    return definition.model_dump(mode="json")


def _flag_by_word(name: str) -> Mapping[str, str]:
    """Return the flags of an adapter by the words of its tool; none where they are no words."""
    adapter = get_harness(name)
    flags = {own: flag for own, flag in adapter.flags.items() if not isinstance(flag, AdapterFlag)}
    words = {flag_option(own, flag): own for own, flag in flags.items()}
    return words if adapter.flags_are_words else {}


def _missing_flags(
    flag_by_word: Mapping[str, str], inspection_by_path: Mapping[str, FileInspection], entry: str
) -> frozenset[str] | None:
    if not flag_by_word:
        return frozenset()
    missing = find_missing_flags(flag_by_word.keys(), inspection_by_path, entry)
    return None if missing is None else frozenset(flag_by_word[word] for word in missing)


def _bundle_file(file: BundleFileSpec, blobs: DiskBlobs) -> BundleFile:
    size_bytes = blobs.size_bytes(parse_digest(file.digest))
    if size_bytes is None:
        raise ArtifactMissing(f"the file {file.path[:80]!r}, {file.digest}, was not uploaded")
    return BundleFile(path=file.path, digest=file.digest, size_bytes=size_bytes, executable=file.executable)


def _check_parts(parts: Sequence[ProgramPart]) -> None:
    for part in parts:
        parse_digest(part.digest)
        if max(map(len, (part.name, part.version, part.source))) > MAX_PART_TEXT:
            raise InvalidInput(f"built_with: a text has over {MAX_PART_TEXT} letters", hint="shorten it")


def _flag_notes(
    registration: ProgramRegistration,
    missing_flags: frozenset[str] | None,
    inspection_by_path: Mapping[str, FileInspection],
) -> list[ProgramWarning]:
    name = registration.name
    if missing_flags is None:
        return [
            ProgramWarning(
                message=f"nothing in its files shows which flags of {name} it knows",
                hint=f"is it {name}? `farm harness test {name}` runs it once",
            )
        ]
    if not missing_flags:
        return []
    listed = ", ".join(sorted(missing_flags))
    return [
        ProgramWarning(
            message=f"it does not know {listed}", hint="cells that set one of them are unsupported"
        )
    ]


def _program_view(
    program: Program, parts_by_id: Mapping[int, tuple[ProgramPart, ...]], *, in_use: bool
) -> ProgramView:
    return ProgramView.of(
        program,
        program.bundle,
        name=program.harness,
        missing_flags=tuple(sorted(program.missing_flags)),
        built_with=parts_by_id.get(program.program_id, ()),
        in_use=in_use,
        expired=program.expired_at is not None,
    )
