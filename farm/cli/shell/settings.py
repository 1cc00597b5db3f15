"""Settings of farm and agent; options of the command line take precedence."""

from typing import Any

from pydantic import ValidationError

from agents.host.config import AgentConfig, agent_config
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


def _drop_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
