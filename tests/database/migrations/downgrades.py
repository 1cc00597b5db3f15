"""Take a database back to an older schema."""

from alembic import command
from sqlalchemy.engine import Engine

from farm.database.migrate import config_for, defer_foreign_keys


def downgrade(engine: Engine, to: str) -> None:
    with (
        engine.connect().execution_options(farm_writes=True) as connection,
        defer_foreign_keys(connection),
        connection.begin(),
    ):
        command.downgrade(config_for(connection), to)
