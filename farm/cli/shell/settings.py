"""Settings of farm and agent; options of the command line take precedence."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.host.config import AgentConfig, agent_config
from farm.cli.shell.address import DEFAULT_URL, data_dir, find_running
from farm.config import FarmConfig, invalid_setting


def farm_config(**options: Any) -> FarmConfig:
    """Return the settings from FARM_*, overridden by options that are not None.

    Raises:
        InvalidInput: a setting is not valid.
    """
    try:
        return FarmConfig(**_drop_none(options))
    except ValidationError as error:
        raise invalid_setting(error, "FARM_") from error


def agent_settings(**options: Any) -> AgentConfig:
    """Return FARM_AGENT_* settings, else those saved by joining, overridden by options that are not None.

    Raises:
        InvalidInput: a setting is not valid.
    """
    try:
        return agent_config(**_drop_none(options))
    except ValidationError as error:
        raise invalid_setting(error, "FARM_AGENT_") from error


def local_agent_config(folder: Path | None) -> AgentConfig:
    """Return the settings of the agent in a folder; default: its own folder, else the embedded agent's."""
    own = agent_settings(data_dir=folder)
    embedded = embedded_agent_dir()
    is_meant = "data_dir" in own.model_fields_set or own.data_dir.is_dir()
    if own.data_dir.absolute() != embedded and (is_meant or not embedded.is_dir()):
        return own
    # The embedded agent gets its address at start and does not store it.
    return agent_settings(data_dir=embedded, farm_url=find_running(data_dir()) or DEFAULT_URL)


def embedded_agent_dir() -> Path:
    """Return the folder of the embedded agent."""
    return data_dir().absolute() / "agent"


def _drop_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
