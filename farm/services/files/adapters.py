"""Which adapter speaks for a registered program."""

import json
from functools import lru_cache

from sqlalchemy.engine import Connection

from farm.core.base.setting_values import SettingValue
from farm.core.errors import HarnessInvalid
from farm.harness.base.adapter import Harness
from farm.harness.base.options import flag_defaults
from farm.harness.generic.adapter import GenericHarness
from farm.harness.registry import get_harness, harness_names
from farm.store.files.programs import Program, list_programs
from farm.wire.documents.files.harness_definition import HarnessDefinition


def adapter_of(program: Program) -> Harness:
    """What the program's own definition makes, or the farm's adapter of that name.

    Raises:
        NotFound: this version of the farm has none.
    """
    if program.definition is None:
        return get_harness(program.harness)
    return _generic(json.dumps(program.definition))


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
