"""Tokens that machines join with, and the agent of a machine, as text."""

from collections.abc import Sequence

from rich.table import Table

from agents.status import AgentStatus
from farm.cli.render import add_row, listing
from farm.cli.words import NOTHING, moment
from farm.wire.token_views import TokenView


def token_table(tokens: Sequence[TokenView]) -> Table:
    """Join tokens, one line each."""
    table = listing(names=("token", "state"), words=("phones", "host"), numbers=("made", "valid until"))
    for view in tokens:
        phones = "admitted at once" if view.auto_admit else "wait for an operator"
        made, until = moment(view.created_at), moment(view.expires_at)
        add_row(table, view.token_id, view.state, phones, view.used_by or NOTHING, made, until)
    return table


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
