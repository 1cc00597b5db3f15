"""A phone with a reference range takes ten checks to make: it is made once for a file, and copied."""

from collections.abc import Iterator

import pytest

from tests.services.conftest import original
from tests.support.database.postgres import PostgresServer
from tests.support.farm.reference_fixture import phone_with_band
from tests.support.farm.service_fixture import FarmRig, HostRig


@pytest.fixture(scope="module")
def sqlite_phone(tmp_path_factory: pytest.TempPathFactory) -> HostRig:
    """The original on SQLite."""
    return original(phone_with_band, FarmRig(tmp_path_factory.mktemp("phone")))


@pytest.fixture(scope="module")
def postgresql_phone(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostRig]:
    """The original on PostgreSQL, in a database that nobody is connected to."""
    with postgres.database("migrated") as name:
        yield original(phone_with_band, FarmRig(tmp_path_factory.mktemp("phone"), postgres.url(name)))


@pytest.fixture
def begun_with(
    request: pytest.FixtureRequest, database_kind: str, begun_with: HostRig | None
) -> HostRig | None:
    """The original of the phone for a test that begins with it."""
    if "phone" not in request.fixturenames:
        return begun_with
    phone: HostRig = request.getfixturevalue(f"{database_kind}_phone")
    return phone


@pytest.fixture
def phone(farm: FarmRig, begun_with: HostRig | None) -> HostRig:
    assert begun_with is not None
    return begun_with.at(farm)
