"""Which addresses never leave the machine."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host, as a URL gives it, is this machine's loopback: an address of it, or `localhost`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
