"""Large matrices are unfolded by the process that took them, or by whoever finds one that was left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Never

import structlog

from farm.clock import Clock
from farm.core.base.ids import MatrixId
from farm.core.errors import FarmError
from farm.database.engine import Database
from farm.services.matrices.lazy_expansion import CHUNK_JOBS, RowBuilder, open_row_builder, put_row_batch
from farm.store.matrices.lazy_expansion import next_batches, next_matrix

log = structlog.get_logger(__name__)


@contextlib.asynccontextmanager
async def run_expansion_worker(database: Database, clock: Clock, asked: asyncio.Event) -> AsyncIterator[None]:
    """Unfold, while the block runs, whenever somebody asks; in the end, what is left stays for the next."""
    task = asyncio.create_task(_expand_when_requested(ExpansionWorker(database, clock), asked))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _expand_when_requested(unfold: "ExpansionWorker", asked: asyncio.Event) -> Never:
    while True:
        await asked.wait()
        asked.clear()
        try:
            await unfold()
        except FarmError as error:
            # A busy database, or one that went away: the next tick asks again.
            log.warning("unfolding_broke_off", code=error.code, message=error.message)
        except Exception:
            # Nobody else would begin it again before the farm is started anew.
            log.exception("unfolding_failed")


class ExpansionWorker:
    """Unfolds what there is to unfold whenever called; other writers have their turn between two chunks."""

    def __init__(self, database: Database, clock: Clock, *, chunk_jobs: int = CHUNK_JOBS) -> None:
        self._database = database
        self._clock = clock
        self._chunk_jobs = chunk_jobs

    async def __call__(self) -> None:
        """Go on until nothing is left, also of what is submitted meanwhile.

        One that cannot be unfolded, through a mistake of ours, keeps no other waiting: it is left as it is.
        """
        maker: RowBuilder | None = None
        failed: set[MatrixId] = set()
        while (next_id := await self._database.read_async(next_matrix, excluded=failed)) is not None:
            try:
                if maker is None or maker.matrix_id != next_id:
                    maker = await self._database.read_async(open_row_builder, next_id)
                if maker is not None:
                    await self._put_chunk(maker)
            except FarmError:
                raise
            except Exception:
                log.exception("unfolding_failed", matrix_id=next_id)
                failed.add(next_id)

    async def _put_chunk(self, maker: RowBuilder) -> None:
        """Queue the next jobs of a matrix."""
        pieces = await self._database.read_async(next_batches, maker.matrix_id, jobs=self._chunk_jobs)
        if not pieces:
            # Another process was quicker with the last of them, or it was cancelled.
            return
        # On a thread, and before the lock is asked for: to put a round in order takes a while.
        chunk = await asyncio.to_thread(maker.chunk, pieces)
        # A lost race is no trouble: the next look finds where the other one left it.
        if await self._database.write_async(put_row_batch, maker, chunk, now=self._clock.now()):
            log.debug("jobs_unfolded", matrix_id=maker.matrix_id, jobs=len(chunk.jobs))
