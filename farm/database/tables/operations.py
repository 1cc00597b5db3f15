"""Leader leases of the farm processes, and database epochs."""

import sqlalchemy as sa

from farm.database.tables.columns import UtcTime, metadata

leader_leases = sa.Table(
    "leader_leases",
    metadata,
    # A lease has one holder at a time.
    sa.Column("lease", sa.Text, primary_key=True),
    #: The name of the farm process; unique to each of its runs.
    sa.Column("holder", sa.Text, nullable=False),
    #: Any process may acquire it from then on.
    sa.Column("expires_at", UtcTime, nullable=False),
)

database_epochs = sa.Table(
    "database_epochs",
    metadata,
    #: Random; a restored database gets a new one, because it may lack the latest changes.
    sa.Column("epoch", sa.Text, primary_key=True),
    sa.Column("began_at", UtcTime, nullable=False),
    #: `created` or `restored from ...`.
    sa.Column("cause", sa.Text, nullable=False),
)
