"""Opens the database that the settings name, or says what keeps a farm from using it."""

import os
import secrets
import socket

import psycopg
import sqlalchemy as sa
from psycopg import pq
from sqlalchemy.engine import URL, Engine

from farm.config import FarmConfig
from farm.core.errors import FarmBusy, FarmFault, InvalidInput
from farm.database.engine import Database, create_engine, libpq_parameters, sqlite_url

#: The oldest PostgreSQL that the tests were run on; an older one is refused.
OLDEST_MAJOR = 16
#: How long a look waits for a server that does not answer.
_CONNECT_TIMEOUT_S = 5
_HINT = "FARM_DATABASE_URL, or the file that FARM_DATABASE_URL_FILE names, says where it is"


def open_database(config: FarmConfig, *, process: str = "") -> Database:
    """The farm's database; nothing is connected yet."""
    return Database(url_of(config), process=process)


def process_name() -> str:
    """A name for this life of this process that no other has, and that tells people where it is."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def url_of(config: FarmConfig) -> str:
    """Where the database is, with its password."""
    if config.database_url is None:
        return sqlite_url(config.database_path)
    return config.database_url.get_secret_value()


def display_url(config: FarmConfig) -> str:
    """Where the database is, for people: without its password."""
    if config.database_url is None:
        return str(config.database_path)
    address = _parse_url(config.database_url.get_secret_value())
    # Parameters may hold one, too.
    return address.set(query={}, drivername="postgresql").render_as_string(hide_password=True)


def check_server(config: FarmConfig) -> None:
    """Try the PostgreSQL server, if the farm is to use one.

    Raises:
        InvalidInput: the address is none, the login is refused, there is no such database, or the server is
            too old.
        FarmFault: nothing answers there, or it does not let anybody in yet.
        FarmBusy: it ended the connection, and takes others.
    """
    if config.database_url is None:
        return
    place = display_url(config)
    engine = create_engine(url_of(config), patience_s=_CONNECT_TIMEOUT_S)
    try:
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            check_version(driver.info.server_version)
    except sa.exc.OperationalError as error:
        raise _refusal(engine, place, error) from error
    finally:
        engine.dispose()


def check_version(version: int) -> None:
    """Refuse a server that is older than any that was tried.

    Args:
        version: as libpq gives it, 160014 for 16.14.

    Raises:
        InvalidInput: so it is.
    """
    if version // 10_000 < OLDEST_MAJOR:
        raise InvalidInput(
            f"the database's server is PostgreSQL {version // 10_000}.{version % 10_000}",
            hint=f"benchfarm was tried on {OLDEST_MAJOR} and 18: use such a server, or a newer one",
        )


def _refusal(engine: Engine, place: str, error: sa.exc.OperationalError) -> InvalidInput | FarmFault:
    """Why nobody gets in. libpq has no codes for it, so it is found out by trying."""
    match _ping(engine.url):
        case pq.Ping.OK:
            pass
        case pq.Ping.REJECT:
            return FarmFault(f"the server of {place} starts, or stops", hint="try again in a moment")
        case _:
            return FarmFault(
                f"no PostgreSQL answers at {place}", hint=f"start it, or correct its address: {_HINT}"
            )
    if _can_connect(engine.url):
        return FarmBusy(f"{place} ended a connection: {error.orig}")
    if _can_connect(engine.url.set(database="postgres")):
        name = engine.url.database or engine.url.username
        return InvalidInput(
            f"{place} is not there, or not for this user", hint=f"create it: `createdb {name}`. {_HINT}"
        )
    said = str(error.orig).strip().splitlines()[-1:]
    return InvalidInput(f"{place} refuses the login: {' '.join(said)}", hint=f"user or password? {_HINT}")


def _ping(url: URL) -> pq.Ping:
    try:
        where = psycopg.conninfo.make_conninfo(**libpq_parameters(url), connect_timeout=_CONNECT_TIMEOUT_S)
    except psycopg.ProgrammingError:
        return pq.Ping.NO_ATTEMPT
    return pq.Ping(pq.PGconn.ping(where.encode()))


def _can_connect(url: URL) -> bool:
    try:
        psycopg.connect(**libpq_parameters(url), connect_timeout=_CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError:
        return False
    return True


def _parse_url(url: str) -> URL:
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        # Without what was said: the password may be part of it.
        raise InvalidInput("the address of the database cannot be read", hint=_HINT) from None
