"""The agent of this machine: its own agent, or the embedded one of a farm that runs here."""

from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.shell.address import DEFAULT_URL, data_dir, find_running
from farm.cli.shell.settings import agent_settings

if TYPE_CHECKING:
    from agents.host.config import AgentConfig


def local_agent_config(folder: Path | None) -> "AgentConfig":
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
