"""Fixtures that several folders of tests use."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from farm.database.engine import create_engine, sqlite_url
from farm.database.migrate import upgrade
from tests.support.database.migrated_database import put_migrated
from tests.support.database.postgres import NoPostgres, PostgresServer, running_postgres
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig

# How long an example takes tells how busy the machine is, and nothing else.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The farm that who runs the tests is logged in at is none of their business, nor of the commands they start.
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
for name in ("FARM_TOKEN", "FARM_TOKEN_FILE"):
    os.environ.pop(name, None)

# Who runs tests in the background of a script has SIGINT ignored, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TEMPLATE = "migrated"


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that farm and agent run on."""
    return "asyncio"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[FarmRig]:
    """An empty farm with the programs it comes with; whatever the test did, no invariant may be broken."""
    with checked_rig(tmp_path) as rig:
        yield rig


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with two healthy phones, on a farm that has both variants of the usual matrix."""
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    host.plug_in("phone-1")
    host.plug_in("phone-2")
    host.earn_health()
    return host


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test process's own, with a migrated database to copy."""
    try:
        with running_postgres() as server:
            server.execute(f"CREATE DATABASE {_TEMPLATE}")
            engine = create_engine(server.url(_TEMPLATE))
            upgrade(engine)
            engine.dispose()
            yield server
    except NoPostgres as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind that a farm can keep its rows in."""
    if request.param == "sqlite":
        path = tmp_path / "farm.sqlite3"
        put_migrated(path)
        yield sqlite_url(path)
    else:
        server = request.getfixturevalue("postgres")
        with server.database(_TEMPLATE) as name:
            yield server.url(name)


@pytest.fixture(autouse=True)
def _logging_as_it_comes() -> Iterator[None]:
    """A command that a test runs in this process sets up logging; the next test is not to hear less by it."""
    yield
    structlog.reset_defaults()
