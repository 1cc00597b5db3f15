"""Listings of what machines join with."""

from collections.abc import Sequence

from rich.table import Table

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
