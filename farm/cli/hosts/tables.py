"""Tokens that machines join with, and the agent of a machine, as text."""

from collections.abc import Sequence

from rich.table import Table

from agents.doctor.status import AgentStatus
from farm.cli.shell.formatting import local_time_text
from farm.cli.shell.tables import add_row, new_table
from farm.wire.documents.access import AccessTokenView
from farm.wire.documents.join_tokens import TokenView


def token_table(tokens: Sequence[TokenView | AccessTokenView]) -> Table:
    """Join tokens and access tokens, one line each."""
    table = new_table(names=("token", "state", "role"), words=("for",), numbers=("made", "valid until"))
    for view in tokens:
        until = "no end" if view.expires_at is None else local_time_text(view.expires_at)
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
    phones = "phones admitted at once" if view.auto_admit else "phones wait for an operator"
    return f"{view.used_by or 'a new host'}, {phones}"


def agent_text(found: AgentStatus) -> str:
    """One agent, a line for each fact."""
    running = f"runs (pid {found.pid})" if found.pid else "does not run"
    attempts = [
        f"          attempt {each.attempt_id} on {each.device_id}: {each.phase}" for each in found.attempts
    ]
    lines = [
        f"host      {found.host}",
        f"farm      {found.farm_url}{'' if found.has_joined else ' (not joined)'}",
        f"agent     {running}",
        f"adb       {found.adb_server or 'no server runs'}",
        f"data      {found.data_dir}",
        f"reports   {found.waiting_reports} waiting for the farm",
        f"attempts  {len(attempts)} in hand",
        *attempts,
    ]
    return "\n".join(lines)
