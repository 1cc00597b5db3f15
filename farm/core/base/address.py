"""Addresses of servers and databases as people write them, and which never leave the machine."""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

#: Why an address with a login is refused.
NO_LOGIN = "the address of a farm has no name and no password"


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Tell whether a URL's host is this machine's loopback: one of its addresses, or `localhost`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_overheard(url: str) -> bool:
    """Tell whether others may read the traffic: it goes over a network, and is not encrypted."""
    address = urlsplit(url)
    return address.scheme == "http" and not is_loopback(address.hostname or "")


def has_login(address: str) -> bool:
    """Tell whether an address has a name or a password in it; no message repeats such a one."""
    return "@" in address


def host_and_port(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, the port from 0 to 65535; an IPv6 address loses its brackets.

    Raises:
        ValueError: it is written otherwise.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_bracketed = host == f"[{bare}]"
    if not bare or (":" in bare) != is_bracketed or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return bare, int(port)


def web_address(host: str, port: int, *, is_encrypted: bool = False) -> str:
    """Return the http:// or https:// address of a host and port."""
    scheme = "https" if is_encrypted else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


_SCHEMES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


def postgres_url(text: str) -> str:
    """Return the address for SQLAlchemy and psycopg.

    Raises:
        ValueError: it is none; the message repeats nothing of it, because a password may be inside.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.lower() not in _SCHEMES or not rest:
        raise ValueError("it is no address of a PostgreSQL database: postgresql://USER@HOST/DATABASE")
    return f"postgresql+psycopg://{rest}"
