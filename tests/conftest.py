"""Fixtures that several folders of tests use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from farm_rig import FarmRig, HostRig
from hypothesis import HealthCheck, settings
from invariants import check_engine, check_invariants
from postgres import NoPostgres, PostgresServer, running_postgres

# How long an example takes tells how busy the machine is, and nothing else.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def farm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FarmRig]:
    """An empty farm with the programs it comes with; whatever the test did, no invariant may be broken."""
    if os.environ.get("PGTRY"):
        server = request.getfixturevalue("postgres")
        with server.database() as name:
            rig = FarmRig(tmp_path, server.url(name))
            yield rig
            check_engine(rig.database.engine)
            rig.close()
        return
    rig = FarmRig(tmp_path)
    yield rig
    rig.close()
    check_invariants(rig.path)


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
    """A PostgreSQL of this test process's own."""
    try:
        with running_postgres() as server:
            yield server
    except NoPostgres as reason:
        pytest.skip(str(reason))
