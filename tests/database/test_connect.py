"""What keeps a farm from using a PostgreSQL is said in words that help, and never with a password."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from farm.cli.shell.settings import farm_config
from farm.config import FarmConfig
from farm.core.errors import FarmError, FarmFault, InvalidInput
from farm.database.connect import check_server, check_version, display_url, url_of
from tests.support.database.postgres import PostgresServer

PASSWORD = "s3cr3t"


@pytest.fixture(autouse=True)
def no_settings_of_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FARM_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database("migrated") as name:
        yield name


def refusal(config: FarmConfig, error: type[FarmError]) -> FarmError:
    with pytest.raises(error) as refused:
        check_server(config)
    said = f"{refused.value} {refused.value.hint} {refused.value.__cause__!r}"
    assert PASSWORD not in said
    assert refused.value.hint
    return refused.value


def test_a_server_that_serves_is_no_trouble(postgres: PostgresServer, database: str) -> None:
    check_server(farm_config(database_url=postgres.url(database)))
    # SQLite needs no server.
    check_server(farm_config())


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "POSTGRES"])
def test_the_address_may_be_written_as_providers_write_it(
    postgres: PostgresServer, database: str, scheme: str
) -> None:
    _, rest = postgres.url(database).split("://")
    config = farm_config(database_url=f"{scheme}://{rest}\n")
    assert sa.make_url(url_of(config)).drivername == "postgresql+psycopg"
    check_server(config)


@pytest.mark.parametrize(
    "address", [f"mysql://me:{PASSWORD}@there/farm", PASSWORD, "", "postgresql://", f"sqlite:///{PASSWORD}"]
)
def test_what_is_no_address_of_a_postgresql_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"FARM_DATABASE_URL=.*PostgreSQL") as refused:
        farm_config(database_url=address)
    assert PASSWORD not in str(refused.value)
    assert f"{refused.value.__cause__!r}".count(PASSWORD) == 0


def test_an_address_whose_port_is_none_is_refused_without_repeating_it() -> None:
    refusal(farm_config(database_url=f"postgresql://me:x@there:{PASSWORD}/farm"), InvalidInput)


def test_an_address_in_a_file_goes_before_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"postgres://me:{PASSWORD}@there/farm\n")
    monkeypatch.setenv("FARM_DATABASE_URL", "postgresql://elsewhere/farm")
    assert display_url(farm_config()) == "postgresql://elsewhere/farm"
    config = farm_config(database_url_file=secret)
    assert display_url(config) == "postgresql://me:***@there/farm"
    assert PASSWORD in url_of(config)
    monkeypatch.setenv("FARM_DATABASE_URL_FILE", str(secret))
    assert display_url(farm_config()) == "postgresql://me:***@there/farm"
    assert PASSWORD not in f"{farm_config()!r}"


def test_a_file_without_an_address_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"FARM_DATABASE_URL_FILE=.*none.*cannot be read"):
        farm_config(database_url_file=tmp_path / "none")
    (tmp_path / "other").write_text(PASSWORD)
    with pytest.raises(InvalidInput, match=r"other: .*PostgreSQL") as refused:
        farm_config(database_url_file=tmp_path / "other")
    assert PASSWORD not in str(refused.value)


def test_a_parameter_of_the_address_is_not_shown_either() -> None:
    config = farm_config(database_url=f"postgresql://there/farm?password={PASSWORD}")
    assert display_url(config) == "postgresql://there/farm"


def test_a_server_that_does_not_answer_is_the_farms_trouble() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://me:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/farm"
        assert "answers" in refusal(farm_config(database_url=url), FarmFault).message


def test_a_missing_database_is_distinguished_from_a_refused_login(
    postgres: PostgresServer, database: str
) -> None:
    missing = refusal(farm_config(database_url=postgres.url("none")), InvalidInput)
    assert "does not exist" in missing.message
    assert "createdb none" in (missing.hint or "")
    _, rest = postgres.url(database).split("postgres@")
    stranger = farm_config(database_url=f"postgresql://stranger:{PASSWORD}@{rest}&connect_timeout=3")
    assert "refuses the login" in refusal(stranger, InvalidInput).message


def test_a_server_that_is_older_than_any_that_was_tried_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"PostgreSQL 15\.4") as refused:
        check_version(150_004)
    assert "16" in refused.value.hint
    check_version(160_000)
    check_version(180_004)
