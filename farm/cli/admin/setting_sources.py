"""The settings in force: what each is, where it came from, what it means."""

import inspect
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from agents.host.config import SAVED_SETTINGS_FILE, AgentConfig, agent_config, find_saved_settings
from farm.cli.shell.settings import farm_config
from farm.config import FarmConfig
from farm.core.base.spec_errors import closest_name
from farm.database.connect import display_url

_FARM, _AGENT = "FARM_", "FARM_AGENT_"
#: Variables that commands read, which are no settings of a farm's or agent's.
COMMAND_VARIABLES = frozenset({"FARM_URL", "FARM_USER", "FARM_TOKEN", "FARM_TOKEN_FILE"})
#: Set for programs that the farm starts, by the farm.
_CHILD_VARIABLES = frozenset({"FARM_RUN", "FARM_PHONE"})
_FIELD = re.compile(r"^    (\w+): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting."""

    #: Its environment variable.
    name: str
    #: In words; secrets are not told.
    value: str
    #: `default`, `environment`, `command line`, or the file it came from.
    source: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownVariable:
    """A variable that looks like a setting and is none."""

    name: str
    #: The setting that was probably meant.
    meant: str | None


def farm_settings(data: Path | None) -> list[Setting]:
    """The farm's, as `farm up` would have them here; raises InvalidInput where one cannot be."""
    config = farm_config(data_dir=data)
    values = {**_values(config), "database_url": display_url(config) if config.database_url else "none"}
    files = {"database_url": str(config.database_url_file)} if config.database_url_file else {}
    given = set() if data is None else {"data_dir"}
    return [
        Setting(
            name=_FARM + name.upper(),
            value=value,
            source=files.get(name) or _source(_FARM + name.upper(), is_given=name in given),
            meaning=setting_meanings(FarmConfig)[name],
        )
        for name, value in values.items()
    ]


def local_agent_settings() -> list[Setting]:
    """Those of an agent on this machine, as `farm agent run` would have them."""
    config = agent_config()
    kept = find_saved_settings(config.data_dir)
    from_file = set() if kept is None else set(type(kept).model_fields)
    found = []
    for name, value in _values(config).items():
        variable = _AGENT + name.upper()
        source = _source(variable, is_given=False)
        if source == "default" and name in from_file:
            source = str(config.data_dir / SAVED_SETTINGS_FILE)
        found.append(
            Setting(name=variable, value=value, source=source, meaning=setting_meanings(AgentConfig)[name])
        )
    return found


def unknown_variables(environment: Mapping[str, str]) -> list[UnknownVariable]:
    """FARM_ variables that nobody reads: misspelt, or of another release."""
    known = {*COMMAND_VARIABLES, *_CHILD_VARIABLES, *_names(FarmConfig, _FARM), *_names(AgentConfig, _AGENT)}
    return [
        UnknownVariable(name=name, meant=closest_name(name, known))
        for name in sorted(environment)
        if name.upper().startswith(_FARM) and name.upper() not in known
    ]


def setting_meanings(model: type[BaseSettings]) -> dict[str, str]:
    """What each setting means, by its name: the `#:` comment above it, or above those it is one of."""
    found: dict[str, str] = {}
    lines: list[str] = []
    is_comment = False
    for line in inspect.getsource(model).splitlines():
        if line.startswith("    #: "):
            lines = [*lines, line[7:]] if is_comment else [line[7:]]
        elif (field := _FIELD.match(line)) and field[1] in model.model_fields:
            found[field[1]] = " ".join(lines)
        elif not line.strip():
            lines = []
        is_comment = line.startswith("    #: ")
    return found


def _values(config: BaseSettings) -> dict[str, str]:
    return {name: _value_text(getattr(config, name)) for name in type(config).model_fields}


def _value_text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case SecretStr():
            return "(secret)"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)


def _source(variable: str, *, is_given: bool) -> str:
    if is_given:
        return "command line"
    is_set = any(name.upper() == variable for name in os.environ)
    return "environment" if is_set else "default"


def _names(model: type[BaseSettings], prefix: str) -> Iterable[str]:
    return (prefix + name.upper() for name in model.model_fields)
