"""The status of an agent, read from its data folder, whether it runs or not."""

import json
from dataclasses import dataclass
from pathlib import Path

from agents.adb.server import find_own_server, own_address
from agents.host.config import AgentConfig
from agents.host.data_dir import find_holder
from agents.link.enrollment import find_credential


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStatus:
    """One active attempt."""

    attempt_id: int
    device_id: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """The status of one agent."""

    host: str
    farm_url: str
    data_dir: str
    has_joined: bool
    #: The agent's process; None when it does not run.
    pid: int | None
    #: Address of its adb server; None when none runs.
    adb_server: str | None
    attempts: tuple[AttemptStatus, ...]
    #: Reports that are not delivered yet.
    waiting_reports: int


def agent_status(config: AgentConfig) -> AgentStatus:
    """Read the status; neither farm, adb nor devices are called."""
    folder = config.data_dir
    server = None if find_own_server(folder / "adb") is None else own_address(folder / "adb")
    # Not by AttemptJournal and Spool: they clean their folders up, which only the agent may do.
    attempts = (_attempt_status(path) for path in (folder / "attempts").glob("*.json"))
    return AgentStatus(
        host=config.host,
        farm_url=config.farm_url,
        data_dir=str(folder),
        has_joined=find_credential(folder) is not None,
        pid=find_holder(folder),
        adb_server=config.adb_server or server,
        attempts=tuple(sorted(filter(None, attempts), key=lambda attempt: attempt.attempt_id)),
        waiting_reports=sum(1 for _ in (folder / "spool").glob("*.json")),
    )


def _attempt_status(path: Path) -> AttemptStatus | None:
    try:
        fields = json.loads(path.read_bytes())
        return AttemptStatus(
            attempt_id=int(fields["attempt_id"]),
            device_id=str(fields["device_id"]),
            phase=str(fields["phase"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        # It has ended since, or was truncated by a power cut.
        return None
