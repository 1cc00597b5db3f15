"""The agent of this machine: one of its own, or the one within the farm that runs here."""

from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.shell.address import DEFAULT_URL, data_dir, find_running
from farm.cli.shell.settings import agent_settings

if TYPE_CHECKING:
    from agents.host.config import AgentConfig


def local_agent_config(folder: Path | None) -> "AgentConfig":
    """The settings of the agent of a folder; without one, of the agent's own folder, or else the farm's."""
    own = agent_settings(data_dir=folder)
    embedded = embedded_agent_dir()
    is_meant = "data_dir" in own.model_fields_set or own.data_dir.is_dir()
    if own.data_dir.absolute() != embedded and (is_meant or not embedded.is_dir()):
        return own
    # It is told where its farm is when it is started, and keeps nothing of that.
    return agent_settings(data_dir=embedded, farm_url=find_running(data_dir()) or DEFAULT_URL)


def embedded_agent_dir() -> Path:
    """Where the agent within a farm has its own things."""
    return data_dir().absolute() / "agent"
