"""Brings a database to the schema this version needs."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Engine

import farm

MIGRATIONS = Path(farm.__file__).resolve().parent.parent / "migrations"


def upgrade(engine: Engine) -> None:
    """Apply all missing migrations, each in a transaction; does nothing on an up-to-date database."""
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
