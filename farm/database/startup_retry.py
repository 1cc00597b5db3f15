"""Retries of start-up steps while the database is temporarily unavailable."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from farm.core.errors import FarmBusy

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Longer than a transaction waits for a lock, because the holder may be idle for that long.
RETRY_FOR_S = 20.0
_RETRY_EVERY_S = 0.2


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
