"""How farm processes agree: who does periodic duties, and which history of the database this is."""

import sqlalchemy as sa

from farm.database.tables.columns import UtcTime, metadata

leader_leases = sa.Table(
    "leader_leases",
    metadata,
    # A lease has one holder at a time.
    sa.Column("lease", sa.Text, primary_key=True),
    #: Which farm process: unique to each of its lives.
    sa.Column("holder", sa.Text, nullable=False),
    #: Anybody may take it over from then on.
    sa.Column("expires_at", UtcTime, nullable=False),
)

database_epochs = sa.Table(
    "database_epochs",
    metadata,
    #: Random; a restored database gets another one, because what it says last may not be what happened last.
    sa.Column("epoch", sa.Text, primary_key=True),
    sa.Column("began_at", UtcTime, nullable=False),
    #: Why: `created`, `restored from ...`.
    sa.Column("cause", sa.Text, nullable=False),
)
