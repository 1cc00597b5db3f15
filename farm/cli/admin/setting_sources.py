"""The current settings with their values, sources and meanings."""

import inspect
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import SecretStr
from pydantic_settings import BaseSettings
from rich.console import Group, RenderableType

from agents.host.config import SAVED_SETTINGS_FILE, AgentConfig, agent_config, find_saved_settings
from farm.cli.shell.settings import farm_config
from farm.cli.shell.tables import Listing, prose
from farm.cli.shell.tables import name as name_column
from farm.config import FarmConfig
from farm.core.base.spec_errors import closest_name
from farm.database.connect import display_url

_FARM, _AGENT = "FARM_", "FARM_AGENT_"
#: Variables that commands read and that are not settings of a farm or an agent.
COMMAND_VARIABLES = frozenset({"FARM_URL", "FARM_USER", "FARM_TOKEN", "FARM_TOKEN_FILE"})
#: Variables that the farm sets for programs that it starts.
_CHILD_VARIABLES = frozenset({"FARM_RUN", "FARM_PHONE"})
_FIELD = re.compile(r"^    (\w+): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting."""

    #: Its environment variable.
    name: str
    #: As text; secrets are hidden.
    value: str
    #: `default`, `environment`, `command line`, or the file it came from.
    source: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownVariable:
    """A FARM_ variable that is not a setting."""

    name: str
    #: The setting with the most similar name.
    meant: str | None


def farm_settings(data: Path | None) -> list[Setting]:
    """Return the settings of `farm up` here; raises InvalidInput if one is not valid."""
    config = farm_config(data_dir=data)
    values = {**_values(config), "database_url": display_url(config) if config.database_url else "none"}
    sources = {} if data is None else {"data_dir": "command line"}
    if config.database_url_file:
        sources["database_url"] = str(config.database_url_file)
    return _settings_of(FarmConfig, _FARM, values, sources=sources)


def local_agent_settings() -> list[Setting]:
    """Return the settings of `farm agent run` on this machine."""
    config = agent_config()
    saved = find_saved_settings(config.data_dir)
    names = () if saved is None else type(saved).model_fields
    defaults = dict.fromkeys(names, str(config.data_dir / SAVED_SETTINGS_FILE))
    return _settings_of(AgentConfig, _AGENT, _values(config), defaults=defaults)


def _settings_of(
    model: type[BaseSettings],
    prefix: str,
    values: Mapping[str, str],
    *,
    sources: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> list[Setting]:
    """Return the settings, with the sources that take precedence over the environment and those behind it."""
    in_environment = {variable.upper() for variable in os.environ}
    meanings = setting_meanings(model)
    settings = []
    for name, value in values.items():
        variable = prefix + name.upper()
        fallback = "environment" if variable in in_environment else defaults.get(name, "default")
        source = sources.get(name, fallback)
        settings.append(Setting(name=variable, value=value, source=source, meaning=meanings[name]))
    return settings


def unknown_variables(environment: Mapping[str, str]) -> list[UnknownVariable]:
    """Return FARM_ variables without effect: misspelled, or of another release."""
    names = {*COMMAND_VARIABLES, *_CHILD_VARIABLES, *_names(FarmConfig, _FARM), *_names(AgentConfig, _AGENT)}
    return [
        UnknownVariable(name=name, meant=closest_name(name, names))
        for name in sorted(environment)
        if name.upper().startswith(_FARM) and name.upper() not in names
    ]


def setting_meanings(model: type[BaseSettings]) -> dict[str, str]:
    """Return the meaning of each setting by name, from the `#:` comment above it or above its group."""
    meaning_by_name: dict[str, str] = {}
    lines: list[str] = []
    is_comment = False
    for line in inspect.getsource(model).splitlines():
        if line.startswith("    #: "):
            lines = [*lines, line[7:]] if is_comment else [line[7:]]
        elif (field := _FIELD.match(line)) and field[1] in model.model_fields:
            meaning_by_name[field[1]] = " ".join(lines)
        elif not line.strip():
            lines = []
        is_comment = line.startswith("    #: ")
    return meaning_by_name


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


def _names(model: type[BaseSettings], prefix: str) -> Iterable[str]:
    return (prefix + name.upper() for name in model.model_fields)


def settings_table(farm: Sequence[Setting], agent: Sequence[Setting]) -> RenderableType:
    """Return tables of the settings of the farm and of an agent."""
    return Group(_settings("the farm", farm), "", _settings("an agent on this machine", agent))


def unknown_text(variable: UnknownVariable) -> str:
    """Return a note on a variable without effect."""
    suggestion = f": did you mean {variable.meant}?" if variable.meant else ""
    return f"note: {variable.name} is set but has no effect{suggestion}"


def _settings(title: str, settings: Sequence[Setting]) -> RenderableType:
    table = Listing[Setting](
        name_column(title, lambda setting: setting.name),
        prose("value", lambda setting: setting.value),
        prose("from", lambda setting: setting.source),
        prose("meaning", lambda setting: setting.meaning),
    )
    return table(settings)
