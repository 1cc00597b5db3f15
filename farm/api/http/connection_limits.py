"""Limits of open connections: one caller's thousands must not use up the files that the farm may open."""

import resource
from collections.abc import Iterable

import structlog

_log = structlog.get_logger(__name__)

#: Of file descriptors; kernels allow more, and a process that asks for all of them wastes memory.
_WANTED_FILES = 65_536
#: Connections of one listener. A farm of a thousand hosts has about three thousand.
MAX_CONNECTIONS = 8192
#: Of them, what one address may have. A proxy has one address for all behind it.
_SHARE_OF_ADDRESS = 4
_LOG_EVERY_S = 60.0


def raise_file_limit() -> None:
    """Allow this process as many open files as its user may have, up to 65,536."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class ConnectionLimits:
    """How many connections a listener has, in all and of one address, and a log of those beyond."""

    def __init__(self, most: int | None = None) -> None:
        """Take the limit, by default half of the files that this process may open, at most 8192."""
        self._most = most
        self._refused = 0
        self._logged_at_s: float | None = None

    def admits(self, address: str, addresses: Iterable[str], now_s: float) -> bool:
        """Return whether a new connection may stay.

        Args:
            address: where it comes from.
            addresses: of all open connections, this one among them.
            now_s: of a monotonic clock, in seconds.
        """
        most = self._most or min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        every = list(addresses)
        if len(every) <= most and every.count(address) <= max(1, most // _SHARE_OF_ADDRESS):
            return True
        self._refused += 1
        if self._logged_at_s is None or now_s - self._logged_at_s >= _LOG_EVERY_S:
            _log.warning("connections_refused", count=self._refused, open=len(every), address=address)
            self._refused, self._logged_at_s = 0, now_s
        return False
