"""Fixtures that several folders of tests use.

What they need of the farm is imported by those that are used: a test of a pure function waits for none of it.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.session.collection_gc import CollectionGc
from tests.support.session.duration_table import DurationTable
from tests.support.session.leftover_processes import LeftoverProcesses
from tests.support.session.mixed_files import MixedFiles
from tests.support.session.shared_folder import one_at_a_time, shared_folder
from tests.support.session.tiers import Tiers
from tests.support.session.time_limit import TimeLimit

if TYPE_CHECKING:
    from tests.support.database.postgres import PostgresServer
    from tests.support.farm.service_fixture import FarmRig, HostRig

# How long an example takes tells how busy the machine is, and nothing else.
settings.register_profile(
    "quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make test-long` asks for it, by `--hypothesis-profile`.
settings.register_profile("long", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")

# The farm that who runs the tests is logged in at is none of their business, nor of the commands they start.
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
for name in ("FARM_TOKEN", "FARM_TOKEN_FILE"):
    os.environ.pop(name, None)

# Who runs tests in the background of a script has SIGINT ignored, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Add what this project wants of a test run."""
    for plugin in (
        LeftoverProcesses(),
        Tiers(),
        TimeLimit(),
        MixedFiles(),
        DurationTable(),
        CollectionGc(),
    ):
        config.pluginmanager.register(plugin)


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that farm and agent run on."""
    return "asyncio"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for agents in deep folders: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        yield Path(folder)


@pytest.fixture
def farm(tmp_path: Path) -> "Iterator[FarmRig]":
    """An empty farm with the programs it comes with; whatever the test did, no invariant may be broken."""
    from tests.support.farm.service_fixture import checked_rig

    with checked_rig(tmp_path) as rig:
        yield rig


@pytest.fixture
def sqlite_farm(tmp_path: Path) -> "Iterator[FarmRig]":
    """Return an empty farm on SQLite, for tests of SQLite alone and tests that change its file."""
    from tests.support.farm.service_fixture import checked_rig

    with checked_rig(tmp_path) as rig:
        yield rig


@pytest.fixture
def host(farm: "FarmRig") -> "HostRig":
    """A host with two healthy phones, on a farm that has both variants of the usual matrix."""
    from tests.support.farm.service_fixture import usual_host

    return usual_host(farm)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> "Iterator[PostgresServer]":
    """A PostgreSQL of this test process's own, with a migrated database to copy, made once in a test run."""
    from farm.database.engine import create_engine
    from farm.database.migrate import upgrade
    from tests.support.database.compiled_statements import share_compiled_statements
    from tests.support.database.postgres import NoPostgres, running_postgres

    share_compiled_statements()
    folder = shared_folder(tmp_path_factory, worker_id, "postgres")
    try:
        with one_at_a_time(folder):
            if not (data := folder / "data").exists():
                with running_postgres(keep=data) as server:
                    server.execute("CREATE DATABASE migrated")
                    engine = create_engine(server.url("migrated"))
                    upgrade(engine)
                    engine.dispose()
        with running_postgres(begin_with=data) as server:
            yield server
    except NoPostgres as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind that a farm can keep its rows in."""
    from tests.support.database.database_fixtures import any_database

    with any_database(request, tmp_path) as url:
        yield url


@pytest.fixture(autouse=True)
def _logging_as_it_comes() -> Iterator[None]:
    """A command that a test runs in this process sets up logging; the next test is not to hear less by it."""
    yield
    if (structlog := sys.modules.get("structlog")) is not None:
        structlog.reset_defaults()
