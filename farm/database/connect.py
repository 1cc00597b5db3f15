"""Connection to the configured database, with a clear error if it cannot be used."""

import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
import structlog
from psycopg import pq
from sqlalchemy.engine import URL, Engine

from farm.config import FarmConfig
from farm.core.errors import FarmBusy, FarmFault, InvalidInput
from farm.database.engine import Database, create_engine, libpq_parameters, sqlite_url

#: The oldest PostgreSQL that the tests run on; older servers are refused.
OLDEST_MAJOR = 16
#: Longest wait of a check for a server that does not answer.
_CONNECT_TIMEOUT_S = 5
_HINT = "FARM_DATABASE_URL, or the file that FARM_DATABASE_URL_FILE names, sets its address"
T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Longer than a transaction waits for a lock, because the holder may be idle for that long.
RETRY_FOR_S = 20.0
_RETRY_EVERY_S = 0.2


def open_database(config: FarmConfig, *, process: str = "") -> Database:
    """Return the farm's database without connecting yet."""
    return Database(url_of(config), process=process)


def process_name() -> str:
    """Return a unique name of this run of the process, with its host name and process id."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def url_of(config: FarmConfig) -> str:
    """Return the URL of the database, password included."""
    if config.database_url is None:
        return sqlite_url(config.database_path)
    return config.database_url.get_secret_value()


def display_url(config: FarmConfig) -> str:
    """Return the address of the database without its password, for messages."""
    if config.database_url is None:
        return str(config.database_path)
    address = _parse_url(config.database_url.get_secret_value())
    # Parameters may contain a password, too.
    return address.set(query={}, drivername="postgresql").render_as_string(hide_password=True)


def check_server(config: FarmConfig) -> None:
    """Check that the PostgreSQL server can be used, if one is configured.

    Raises:
        InvalidInput: the address is invalid, the login is refused, the database does not exist, or the server
            is too old.
        FarmFault: no server answers there, or it does not accept connections yet.
        FarmBusy: the server ended the connection, but accepts others.
    """
    if config.database_url is None:
        return
    place = display_url(config)
    engine = create_engine(url_of(config), connect_timeout_s=_CONNECT_TIMEOUT_S)
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
    """Refuse a server that is older than the tested ones.

    Args:
        version: as libpq gives it, 160014 for 16.14.

    Raises:
        InvalidInput: the server is too old.
    """
    if version // 10_000 < OLDEST_MAJOR:
        raise InvalidInput(
            f"the database's server is PostgreSQL {version // 10_000}.{version % 10_000}",
            hint=f"benchfarm is tested on {OLDEST_MAJOR} and 18: use such a server, or a newer one",
        )


def _refusal(engine: Engine, place: str, error: sa.exc.OperationalError) -> InvalidInput | FarmFault:
    """Return why the connection failed; libpq has no codes for it, so further connections find out."""
    match _ping(engine.url):
        case pq.Ping.OK:
            pass
        case pq.Ping.REJECT:
            return FarmFault(f"the server of {place} is starting or stopping", hint="try again in a moment")
        case _:
            return FarmFault(
                f"no PostgreSQL answers at {place}", hint=f"start it, or correct its address: {_HINT}"
            )
    if _can_connect(engine.url):
        return FarmBusy(f"{place} ended a connection: {error.orig}")
    if _can_connect(engine.url.set(database="postgres")):
        name = engine.url.database or engine.url.username
        return InvalidInput(
            f"{place} does not exist, or this user has no access",
            hint=f"create it: `createdb {name}`. {_HINT}",
        )
    reason = " ".join(str(error.orig).strip().splitlines()[-1:])
    return InvalidInput(f"{place} refuses the login: {reason}", hint=f"check user and password: {_HINT}")


def _ping(url: URL) -> pq.Ping:
    try:
        conninfo = psycopg.conninfo.make_conninfo(**_quick_parameters(url))
    except psycopg.ProgrammingError:
        return pq.Ping.NO_ATTEMPT
    return pq.Ping(pq.PGconn.ping(conninfo.encode()))


def _can_connect(url: URL) -> bool:
    try:
        psycopg.connect(**_quick_parameters(url)).close()
    except psycopg.OperationalError:
        return False
    return True


def _quick_parameters(url: URL) -> dict[str, Any]:
    return libpq_parameters(url) | {"connect_timeout": _CONNECT_TIMEOUT_S}


def _parse_url(url: str) -> URL:
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        # Without the original message, which may contain the password.
        raise InvalidInput("the address of the database cannot be read", hint=_HINT) from None


def retry_while_busy(step: Callable[[], T], *, within_s: float = RETRY_FOR_S) -> T:
    """Run a step of the start-up until it succeeds, and return its result.

    Raises:
        FarmBusy: the database was unavailable all the time.
    """
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            return step()
        except FarmBusy as error:
            if time.monotonic() >= deadline_s:
                raise
            _log.warning("startup_waiting_for_database", message=str(error))
        time.sleep(_RETRY_EVERY_S)
