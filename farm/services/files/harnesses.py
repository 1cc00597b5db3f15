"""Harnesses of registered programs: their adapters, and their options for matrices."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.setting_values import SettingValue, flag_choices, flag_maximum
from farm.core.base.spec_errors import unknown_harness
from farm.core.errors import HarnessInvalid
from farm.core.matrices.matrix import KnownHarness
from farm.core.models.variant import Manifest
from farm.core.runs.measurement import COMPUTED_METRICS, SUSTAINED_METRICS
from farm.harness.base.adapter import Harness
from farm.harness.base.options import GenericOptions, HarnessOptions, flag_defaults
from farm.harness.generic.adapter import GenericHarness
from farm.harness.registry import get_harness, get_options, harness_names, has_adapter
from farm.store.files.programs import Program, current_programs, list_programs
from farm.wire.documents.files.harness_definition import HarnessDefinition

_Unsupported = Callable[[Manifest | None, str], str | None]


def adapter_of(program: Program) -> Harness:
    """Return the adapter of a program: of its own definition, or the built-in one of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    return get_adapter(program.harness, program.definition)


def get_adapter(harness: str, definition: Mapping[str, Any] | None) -> Harness:
    """Return the adapter of a definition, or without one the built-in one; raises like `adapter_of`."""
    return get_harness(harness) if definition is None else _generic_adapter(json.dumps(definition))


def default_of_flags(connection: Connection, name: str) -> dict[str, SettingValue]:
    """Return every flag that a harness has or ever had, with its default, which never changes."""
    if has_adapter(name):
        return flag_defaults(get_options(name))
    defaults: dict[str, SettingValue] = {}
    for program in list_programs(connection, harness=name):
        defaults.update(flag_defaults(options_of(program)))
    return defaults


def check_successor(connection: Connection, name: str, definition: HarnessDefinition) -> None:
    """Refuse a definition that would join histories of different work.

    A series records which flags differ from their defaults, so a default must never change.

    Raises:
        HarnessInvalid: a flag has another default than under this name before, or models come or go.
    """
    successor = GenericOptions(definition.definition())
    earlier = default_of_flags(connection, name)
    for flag, default in flag_defaults(successor).items():
        before = earlier.get(flag, default)
        if (before, type(before)) != (default, type(default)):
            raise HarnessInvalid(
                f"flags.{flag}.default: it is `{default}`, and was `{before}` before: what was measured with"
                " either would be one history",
                hint=f"keep `{before}` and set the flag in matrices, or give the harness another name",
            )
    for program in list_programs(connection, harness=name):
        if options_of(program).needs_model != successor.needs_model:
            change = (
                "now needs a model, and did without" if successor.needs_model else "needed a model before"
            )
            raise HarnessInvalid(f"needs_model: `{name}` {change}", hint="give the harness another name")


@lru_cache(maxsize=256)
def _generic_adapter(definition: str) -> Harness:
    return GenericHarness(HarnessDefinition.model_validate_json(definition).definition())


def known_harness(connection: Connection, name: str, *, sustained: bool = False) -> KnownHarness:
    """Return a harness as matrices see it: a built-in one, or the one whose definition was registered last.

    Programs for different ABIs may have definitions of different age. The newest one's flags and defaults
    hold; a flag that an older one does not have counts as missing in its program, and a backend that not
    all of them have is supported nowhere; nor is any for sustained runs that cannot be told how long to work.

    Raises:
        MatrixInvalid: there is none of that name.
    """
    programs = current_programs(connection, name)
    if has_adapter(name):
        options = get_options(name)
    elif programs:
        newest = max(programs.values(), key=lambda own: (own.chosen_at.timestamp(), own.program_id))
        options = options_of(newest)
    else:
        registered = {program.harness for program in list_programs(connection)}
        raise unknown_harness(name, [*registered, *harness_names()])
    return KnownHarness(
        name=name,
        defaults=flag_defaults(options),
        minimums={
            flag: option.minimum for flag, option in options.flags.items() if option.minimum is not None
        },
        maximums={
            flag: most for flag, option in options.flags.items() if (most := flag_maximum(option)) is not None
        },
        choices={
            flag: choices for flag, option in options.flags.items() if (choices := flag_choices(option))
        },
        backends=options.backends,
        metrics=(*options.metrics, *COMPUTED_METRICS, *(SUSTAINED_METRICS if sustained else ())),
        abis=list(programs),
        unsupported=_unsupported_by_any(options, programs, sustained=sustained),
        input_settings=options.input_settings,
        sustained_settings=options.sustained_settings if sustained else {},
        needs_model=options.needs_model,
        missing_flags={
            abi: program.missing_flags | (options.flags.keys() - options_of(program).flags.keys())
            for abi, program in programs.items()
        },
        expired=frozenset(abi for abi, program in programs.items() if program.expired_at is not None),
    )


def options_of(program: Program) -> HarnessOptions:
    """Return the options of a program: of its own definition, or of the built-in adapter of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    if program.definition is None:
        return get_options(program.harness)
    return _generic_options(json.dumps(program.definition))


@lru_cache(maxsize=256)
def _generic_options(definition: str) -> HarnessOptions:
    return GenericOptions(HarnessDefinition.model_validate_json(definition).definition())


def _unsupported_by_any(
    options: HarnessOptions, programs: Mapping[str, Program], *, sustained: bool
) -> _Unsupported:
    """Return the check of cells against the definitions of all current programs, for any device."""
    others = {abi: options_of(program) for abi, program in programs.items()}

    def unsupported(variant: Manifest | None, backend: str) -> str | None:
        reason = options.unsupported(variant, backend) or (options.sustained_obstacle if sustained else None)
        for abi, other in others.items():
            if reason is None and (other_reason := other.unsupported(variant, backend)) is not None:
                reason = f"the program for {abi} is older: {other_reason}; register it again"
        return reason

    return unsupported
