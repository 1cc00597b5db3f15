"""Services are tried on each database. The host that most tests begin with is made once, and copied."""

from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from shutil import copytree

import pytest

from farm.database.engine import sqlite_url
from tests.support.database.migrated_database import put_migrated
from tests.support.database.postgres import PostgresServer
from tests.support.farm.service_fixture import FarmRig, HostRig, checked_rig, usual_host

#: For tests of many turns, whose statements shorter tests send to PostgreSQL, too.
on_sqlite_alone = pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def sqlite_host(tmp_path_factory: pytest.TempPathFactory) -> HostRig:
    """The original on SQLite."""
    return original(usual_host, FarmRig(tmp_path_factory.mktemp("host")))


@pytest.fixture(scope="session")
def postgresql_host(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostRig]:
    """The original on PostgreSQL, in a database that nobody is connected to."""
    with postgres.database("migrated") as name:
        yield original(usual_host, FarmRig(tmp_path_factory.mktemp("host"), postgres.url(name)))


def original(make: Callable[[FarmRig], HostRig], farm: FarmRig) -> HostRig:
    """Make a host of a farm, and close that."""
    try:
        return make(farm)
    finally:
        farm.close()


@pytest.fixture
def begun_with(request: pytest.FixtureRequest, database_kind: str) -> HostRig | None:
    """The original of the host that a test begins with; None where it begins with none, or one of its own."""
    if "host" not in request.fixturenames or hasattr(request.module, "host"):
        return None
    host: HostRig = request.getfixturevalue(f"{database_kind}_host")
    return host


@pytest.fixture
def any_database_url(
    request: pytest.FixtureRequest, database_kind: str, begun_with: HostRig | None, tmp_path: Path
) -> Iterator[str]:
    """An empty database, or a copy of the original's, whose files are copied, too."""
    if begun_with is not None:
        copytree(begun_with.farm.path.parent, tmp_path, dirs_exist_ok=True)
    if database_kind == "sqlite":
        path = tmp_path / "farm.sqlite3"
        put_migrated(path)
        yield sqlite_url(path)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        template = None if begun_with is None else begun_with.farm.database.engine.url.database
        with server.database(template or "migrated") as name:
            yield server.url(name)


@pytest.fixture
def farm(begun_with: HostRig | None, any_database_url: str, tmp_path: Path) -> Iterator[FarmRig]:
    """A farm with the programs it comes with; whatever the test did, no invariant may be broken."""
    with checked_rig(tmp_path, any_database_url) as rig:
        if begun_with is not None:
            rig.clock = copy(begun_with.farm.clock)
        yield rig


@pytest.fixture
def host(farm: FarmRig, begun_with: HostRig | None) -> HostRig:
    """A host with two healthy phones, on a farm that has both variants of the usual matrix."""
    assert begun_with is not None
    return begun_with.at(farm)


@pytest.fixture
def both_variants(farm: FarmRig) -> None:
    """Register both variants of the usual matrix."""
    farm.variant("float32")
    farm.variant("int8-core")
