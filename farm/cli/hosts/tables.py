"""The table of `farm token list` and the output of `farm agent status`."""

from collections.abc import Sequence

from rich.table import Table

from agents.doctor.status import AgentStatus
from farm.cli.shell.formatting import local_time_text
from farm.cli.shell.tables import add_row, new_table
from farm.wire.documents.access import AccessTokenView
from farm.wire.documents.join_tokens import TokenView


def token_table(tokens: Sequence[TokenView | AccessTokenView]) -> Table:
    """Return a table of join tokens and access tokens."""
    table = new_table(names=("token", "state", "role"), words=("owner",), numbers=("created", "valid until"))
    for view in tokens:
        until = "unlimited" if view.expires_at is None else local_time_text(view.expires_at)
        add_row(
            table,
            view.token_id,
            view.state,
            view.role,
            _owner_text(view),
            local_time_text(view.created_at),
            until,
        )
    return table


def _owner_text(view: TokenView | AccessTokenView) -> str:
    if isinstance(view, AccessTokenView):
        return view.name
    admission = "devices admitted automatically" if view.auto_admit else "devices wait for an operator"
    return f"{view.used_by or 'a new host'}, {admission}"


def agent_text(status: AgentStatus) -> str:
    """Return the status of an agent, one line for each fact."""
    running = f"runs (pid {status.pid})" if status.pid else "does not run"
    attempts = [
        f"          attempt {attempt.attempt_id} on {attempt.device_id}: {attempt.phase}"
        for attempt in status.attempts
    ]
    lines = [
        f"host      {status.host}",
        f"farm      {status.farm_url}{'' if status.has_joined else ' (not joined)'}",
        f"agent     {running}",
        f"adb       {status.adb_server or 'no server runs'}",
        f"data      {status.data_dir}",
        f"reports   {status.waiting_reports} waiting for the farm",
        f"attempts  {len(attempts)} in progress",
        *attempts,
    ]
    return "\n".join(lines)
