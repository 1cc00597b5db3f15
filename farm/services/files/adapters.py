"""Which adapter speaks for a registered program, and what matrices may ask of it."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache

from sqlalchemy.engine import Connection

from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import unknown_harness
from farm.core.errors import HarnessInvalid
from farm.core.matrices.matrix import KnownHarness
from farm.core.models.variant import Manifest
from farm.harness.base.adapter import Harness, flag_defaults
from farm.harness.generic.adapter import GenericHarness
from farm.harness.registry import get_harness, harness_names
from farm.store.files.artifacts import expired_at_by_digest
from farm.store.files.programs import Program, current_programs, list_programs
from farm.wire.documents.files.harness_definition import HarnessDefinition

_Unsupported = Callable[[Manifest | None, str], str | None]


def adapter_of(program: Program) -> Harness:
    """What the program's own definition makes, or the farm's adapter of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    if program.definition is None:
        return get_harness(program.harness)
    return _generic(json.dumps(program.definition))


def get_known_harness(connection: Connection, name: str) -> KnownHarness:
    """A harness as matrices see it: the farm's own, or the one whose definition was registered last.

    Programs for different ABIs may have definitions of different age. The newest one's flags and defaults
    hold; a flag that an older one does not have counts as one that its program lacks, and a backend that not
    all of them have is supported nowhere.

    Raises:
        MatrixInvalid: there is none of that name.
    """
    programs = current_programs(connection, name)
    if name in harness_names():
        harness = get_harness(name)
    elif programs:
        harness = adapter_of(max(programs.values(), key=_age))
    else:
        known = {program.harness for program in list_programs(connection)}
        raise unknown_harness(name, [*known, *harness_names()])
    return KnownHarness(
        name=name,
        defaults=flag_defaults(harness),
        minimums={flag: known.minimum for flag, known in harness.flags.items() if known.minimum is not None},
        backends=harness.backends,
        abis=list(programs),
        unsupported=_unsupported_by_any(harness, programs),
        needs_model=harness.needs_model,
        missing_flags={
            abi: program.missing_flags | (harness.flags.keys() - adapter_of(program).flags.keys())
            for abi, program in programs.items()
        },
        expired=_expired(connection, programs),
    )


def default_of_flags(connection: Connection, name: str) -> dict[str, SettingValue]:
    """Every flag that a harness has or ever had, with its default, which never changes."""
    if name in harness_names():
        return flag_defaults(get_harness(name))
    found: dict[str, SettingValue] = {}
    for program in list_programs(connection, harness=name):
        found.update(flag_defaults(adapter_of(program)))
    return found


def check_successor(connection: Connection, name: str, definition: HarnessDefinition) -> None:
    """Refuse a definition that would join histories of different work.

    A series says which flags differ from their defaults, so a default is for ever.

    Raises:
        HarnessInvalid: a flag has another default than under this name before, or models come or go.
    """
    successor = GenericHarness(definition.definition())
    earlier = default_of_flags(connection, name)
    for flag, default in flag_defaults(successor).items():
        known = earlier.get(flag, default)
        if (known, type(known)) != (default, type(default)):
            raise HarnessInvalid(
                f"flags.{flag}.default: it is `{default}`, and was `{known}` before: what was measured with"
                " either would be one history",
                hint=f"keep `{known}` and set the flag in matrices, or give the harness another name",
            )
    for program in list_programs(connection, harness=name):
        if adapter_of(program).needs_model != successor.needs_model:
            said = "now needs a model, and did without" if successor.needs_model else "needed a model before"
            raise HarnessInvalid(f"needs_model: `{name}` {said}", hint="give the harness another name")


@lru_cache(maxsize=256)
def _generic(definition: str) -> Harness:
    return GenericHarness(HarnessDefinition.model_validate_json(definition).definition())


def _expired(connection: Connection, programs: Mapping[str, Program]) -> frozenset[str]:
    gone = expired_at_by_digest(connection).keys()
    return frozenset(
        abi for abi, program in programs.items() if gone & {file.digest for file in program.bundle.files}
    )


def _age(program: Program) -> tuple[float, int]:
    return program.chosen_at.timestamp(), program.program_id


def _unsupported_by_any(harness: Harness, programs: Mapping[str, Program]) -> _Unsupported:
    """A cell must be one that every current program's definition has: they are not told apart by phone."""
    others = {abi: adapter_of(program) for abi, program in programs.items()}

    def unsupported(variant: Manifest | None, backend: str) -> str | None:
        reason = harness.unsupported(variant, backend)
        for abi, other in others.items():
            if reason is None and (other_reason := other.unsupported(variant, backend)) is not None:
                reason = f"the program for {abi} is older: {other_reason}; register it again"
        return reason

    return unsupported
