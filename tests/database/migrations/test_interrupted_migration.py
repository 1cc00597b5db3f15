"""A database that goes away while it is migrated is a farm that is busy, not one that is broken."""

import pytest
import sqlalchemy as sa

from farm.core.errors import FarmBusy
from farm.database.engine import create_engine
from farm.database.migrate import upgrade
from tests.support.database.postgres import PostgresServer


@pytest.mark.invariant("I10")
def test_a_backend_that_is_terminated_within_a_migration_is_said_as_something_that_passes(
    postgres: PostgresServer,
) -> None:
    with postgres.database() as name:
        engine = create_engine(postgres.url(name))

        def terminate(connection: sa.Connection) -> None:
            pid = connection.connection.driver_connection.info.backend_pid
            postgres.execute(f"SELECT pg_terminate_backend({pid})")

        sa.event.listen(engine, "commit", terminate)
        with pytest.raises(FarmBusy):
            upgrade(engine)
        sa.event.remove(engine, "commit", terminate)
        upgrade(engine)
        engine.dispose()
