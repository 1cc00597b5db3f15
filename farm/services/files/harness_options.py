"""What matrices may ask of a harness, by the programs that are registered for it."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache

from sqlalchemy.engine import Connection

from farm.core.base.spec_errors import unknown_harness
from farm.core.matrices.matrix import KnownHarness
from farm.core.models.variant import Manifest
from farm.harness.base.options import GenericOptions, HarnessOptions, flag_defaults
from farm.harness.registry import get_options, harness_names
from farm.store.files.artifacts import expired_at_by_digest
from farm.store.files.programs import Program, current_programs, list_programs
from farm.wire.documents.files.harness_definition import HarnessDefinition

_Unsupported = Callable[[Manifest | None, str], str | None]


def known_harness(connection: Connection, name: str) -> KnownHarness:
    """A harness as matrices see it: the farm's own, or the one whose definition was registered last.

    Programs for different ABIs may have definitions of different age. The newest one's flags and defaults
    hold; a flag that an older one does not have counts as one that its program lacks, and a backend that not
    all of them have is supported nowhere.

    Raises:
        MatrixInvalid: there is none of that name.
    """
    programs = current_programs(connection, name)
    if name in harness_names():
        options = get_options(name)
    elif programs:
        options = options_of(max(programs.values(), key=_age))
    else:
        known = {program.harness for program in list_programs(connection)}
        raise unknown_harness(name, [*known, *harness_names()])
    return KnownHarness(
        name=name,
        defaults=flag_defaults(options),
        minimums={flag: known.minimum for flag, known in options.flags.items() if known.minimum is not None},
        backends=options.backends,
        abis=list(programs),
        unsupported=_unsupported_by_any(options, programs),
        needs_model=options.needs_model,
        missing_flags={
            abi: program.missing_flags | (options.flags.keys() - options_of(program).flags.keys())
            for abi, program in programs.items()
        },
        expired=expired_abis(connection, programs),
    )


def expired_abis(connection: Connection, program_by_abi: Mapping[str, Program]) -> frozenset[str]:
    """The ABIs for whose program the farm has let a file go."""
    gone = expired_at_by_digest(connection).keys()
    return frozenset(
        abi
        for abi, program in program_by_abi.items()
        if gone & {file.digest for file in program.bundle.files}
    )


def options_of(program: Program) -> HarnessOptions:
    """What the program's own definition offers, or the farm's adapter of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    if program.definition is None:
        return get_options(program.harness)
    return _generic(json.dumps(program.definition))


@lru_cache(maxsize=256)
def _generic(definition: str) -> HarnessOptions:
    return GenericOptions(HarnessDefinition.model_validate_json(definition).definition())


def _age(program: Program) -> tuple[float, int]:
    return program.chosen_at.timestamp(), program.program_id


def _unsupported_by_any(options: HarnessOptions, programs: Mapping[str, Program]) -> _Unsupported:
    """A cell must be one that every current program's definition has: they are not told apart by phone."""
    others = {abi: options_of(program) for abi, program in programs.items()}

    def unsupported(variant: Manifest | None, backend: str) -> str | None:
        reason = options.unsupported(variant, backend)
        for abi, other in others.items():
            if reason is None and (other_reason := other.unsupported(variant, backend)) is not None:
                reason = f"the program for {abi} is older: {other_reason}; register it again"
        return reason

    return unsupported
