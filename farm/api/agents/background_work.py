"""Work in the background, on request: what a busy database interrupts goes on with the next request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Never

import structlog

from farm.core.errors import FarmError

log = structlog.get_logger(__name__)


@contextlib.asynccontextmanager
async def run_on_request(
    name: str, work: Callable[[], Awaitable[None]], requested: asyncio.Event, *, every_s: float = 0.0
) -> AsyncIterator[None]:
    """Do work on request while the block runs; at its end, the rest stays for the next process.

    Args:
        name: of the work in the log: `NAME_interrupted` by an error of the tree, `NAME_failed` by a defect.
        work: all that is due.
        requested: is set whenever there may be some.
        every_s: the work waits so long for further requests, so that those that come together cost it once.
    """
    task = asyncio.create_task(_work_when_requested(name, work, requested, every_s))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _work_when_requested(
    name: str, work: Callable[[], Awaitable[None]], requested: asyncio.Event, every_s: float
) -> Never:
    while True:
        await requested.wait()
        await asyncio.sleep(every_s)
        requested.clear()
        try:
            await work()
        except FarmError as error:
            # A busy database, or one that went away: the next tick asks again.
            log.warning(f"{name}_interrupted", code=error.code, message=error.message)
        except Exception:
            # No other task would begin it again before the farm restarts.
            log.exception(f"{name}_failed")
