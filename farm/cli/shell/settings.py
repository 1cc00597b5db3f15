"""The settings of farm and agent, what a command line gives before all others."""

from typing import Any

from pydantic import ValidationError

from agents.host.config import AgentConfig, agent_config
from farm.config import FarmConfig, invalid_setting


def farm_config(**given: Any) -> FarmConfig:
    """FARM_*, with what is given in their place; None gives nothing.

    Raises:
        InvalidInput: one of them cannot be.
    """
    try:
        return FarmConfig(**_drop_none(given))
    except ValidationError as error:
        raise invalid_setting(error, "FARM_") from error


def agent_settings(**given: Any) -> AgentConfig:
    """FARM_AGENT_* before what joining kept, with what is given in their place; None gives nothing.

    Raises:
        InvalidInput: one of them cannot be.
    """
    try:
        return agent_config(**_drop_none(given))
    except ValidationError as error:
        raise invalid_setting(error, "FARM_AGENT_") from error


def _drop_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
