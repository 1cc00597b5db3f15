"""What a farm that starts does about a database that goes away for a moment: try again."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from farm.core.errors import FarmBusy

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: Longer than a transaction waits for a lock: whoever holds one may stand still for that long.
RETRY_FOR_S = 20.0
_RETRY_EVERY_S = 0.2


def retry_while_busy(step: Callable[[], T], *, within_s: float = RETRY_FOR_S) -> T:
    """What a step of the start gives, which may be run several times.

    Raises:
        FarmBusy: the database refused all the time.
    """
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            return step()
        except FarmBusy as error:
            if time.monotonic() >= deadline_s:
                raise
            _log.warning("start_waits_for_database", message=str(error))
        time.sleep(_RETRY_EVERY_S)
